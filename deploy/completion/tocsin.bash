# bash completion for tocsin. Generated from src/cli/commands.cc by `make docs`.
# To use it: source this file, or copy it to ~/.local/share/bash-completion/completions/tocsin

# The words that may follow the words of a command so far.
_tocsin_words() {
  case $1 in
    '') echo 'submit get list amend fire count cancel worker reserve ack nack extend topics topic dead stats cluster watch clock export import token demo journal docs' ;;
    clock) echo 'advance' ;;
    dead) echo 'list redrive purge' ;;
    journal) echo 'verify repair' ;;
    token) echo 'create list revoke' ;;
    topic) echo 'get set test pause resume purge drop' ;;
    'docs') echo 'cli man bash zsh' ;;
  esac
}

# The flags of a command.
_tocsin_flags() {
  case $1 in
    'submit') echo '--id --key --in --at --file --header --trigger --count --attempts --on-conflict' ;;
    'get') echo '--key' ;;
    'list') echo '--state --limit --all --reason' ;;
    'amend') echo '--key --in --at --file' ;;
    'fire') echo '--key' ;;
    'count') echo '--key --event --by' ;;
    'cancel') echo '--key' ;;
    'worker') echo '--concurrency --lease --wait --retry-in --max-jobs --once' ;;
    'reserve') echo '--max --wait --lease --ack' ;;
    'nack') echo '--in --dead --reason' ;;
    'extend') echo '--lease' ;;
    'topic set') echo '--slots --capacity-jobs --capacity-bytes --lease --attempts --backoff --backoff-max --count --retention --paused --sink --in-flight --rate --url --secret --sink-timeout --batch --retry-4xx --kafka-topic --kafka-key --exchange --routing-key' ;;
    'topic purge') echo '--yes' ;;
    'topic drop') echo '--yes' ;;
    'dead list') echo '--limit --all --reason' ;;
    'dead purge') echo '--yes' ;;
    'cluster') echo '--groups' ;;
    'watch') echo '--interval --count' ;;
    'clock advance') echo '--by' ;;
    'export') echo '--all --state --output --resume' ;;
    'import') echo '--topic --batch' ;;
    'token create') echo '--file --name --scope --topic-prefix' ;;
    'token list') echo '--file' ;;
    'token revoke') echo '--file' ;;
    'journal repair') echo '--output' ;;
  esac
}

# What compgen offers as the value of a command's flag.
_tocsin_values() {
  case "$1 $2" in
    'submit --file') echo "-f" ;;
    'submit --trigger') echo "-W 'time count either'" ;;
    'submit --on-conflict') echo "-W 'reject replace keep'" ;;
    'list --state') echo "-W 'scheduled leased dead done cancelled'" ;;
    'amend --file') echo "-f" ;;
    'topic set --paused') echo "-W 'yes no'" ;;
    'topic set --sink') echo "-W 'pull webhook kafka rabbitmq'" ;;
    'topic set --retry-4xx') echo "-W 'yes no'" ;;
    'export --state') echo "-W 'scheduled leased dead done cancelled'" ;;
    'export --output') echo "-f" ;;
    'token create --file') echo "-f" ;;
    'token create --scope') echo "-W 'submit consume admin'" ;;
    'token list --file') echo "-f" ;;
    'token revoke --file') echo "-f" ;;
    'journal repair --output') echo "-d" ;;
  esac
  case $2 in
    '--token-file') echo "-f" ;;
  esac
}

_tocsin() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word offer i
  if [[ $current == = ]]; then  # --state=, which bash takes apart
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
      --)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
      --at|--attempts|--backoff|--backoff-max|--batch|--by|--capacity-bytes|--capacity-jobs|--concurrency|--count|--event|--exchange|--file|--header|--id|--in|--in-flight|--interval|--kafka-key|--kafka-topic|--key|--lease|--limit|--max|--max-jobs|--name|--on-conflict|--output|--paused|--rate|--reason|--retention|--retry-4xx|--retry-in|--routing-key|--scope|--secret|--server|--sink|--sink-timeout|--slots|--state|--timeout|--token-file|--topic|--topic-prefix|--trigger|--url|--wait)
        [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))
        ((i++))
        ;;
      -*) ;;
      *)
        case $command in
          '') command=$word ;;
          clock|dead|journal|token|topic) command="$command $word" ;;
        esac
        ;;
    esac
  done
  COMPREPLY=()
  case $previous in
    --at|--attempts|--backoff|--backoff-max|--batch|--by|--capacity-bytes|--capacity-jobs|--concurrency|--count|--event|--exchange|--file|--header|--id|--in|--in-flight|--interval|--kafka-key|--kafka-topic|--key|--lease|--limit|--max|--max-jobs|--name|--on-conflict|--output|--paused|--rate|--reason|--retention|--retry-4xx|--retry-in|--routing-key|--scope|--secret|--server|--sink|--sink-timeout|--slots|--state|--timeout|--token-file|--topic|--topic-prefix|--trigger|--url|--wait)
      offer=$(_tocsin_values "$command" "$previous")
      [ -n "$offer" ] && eval "COMPREPLY=(\$(compgen $offer -- \"\$current\"))"
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_tocsin_flags "$command") --server --token-file --timeout --json --help" -- "$current"))
  elif offer=$(_tocsin_words "$command") && [ -n "$offer" ]; then
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _tocsin tocsin
