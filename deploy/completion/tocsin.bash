# bash completion for tocsin. Generated from src/cli/commands.cc by `make docs`.
# To use it: source this file, or copy it to ~/.local/share/bash-completion/completions/tocsin

# The words that may follow the words of a command so far.
_tocsin_words() {
  case $1 in
    '') echo 'submit get list tally amend fire count cancel worker reserve ack nack extend leases lease topics topic dead operate operations operation stats cluster alerts watch load health clock export import token mysql demo journal docs' ;;
    clock) echo 'advance' ;;
    dead) echo 'list redrive remove purge' ;;
    journal) echo 'verify repair' ;;
    lease) echo 'revoke' ;;
    mysql) echo 'schema migrate check' ;;
    operation) echo 'get stop' ;;
    token) echo 'create list revoke' ;;
    topic) echo 'get set test pause resume purge drop' ;;
    'docs') echo 'cli man bash zsh fish' ;;
  esac
}

# The flags of a command.
_tocsin_flags() {
  case $1 in
    'submit') echo '--id --key --in --at --past --file --header --trigger --count --attempts --on-conflict' ;;
    'get') echo '--key' ;;
    'list') echo '--limit --all --state --ids --id-prefix --key --header --payload --reason --reason-is --holder --due-from --due-to --created-from --created-to --died-from --died-to --attempts-min --attempts-max --sort' ;;
    'tally') echo '--state --ids --id-prefix --key --header --payload --reason --reason-is --holder --due-from --due-to --created-from --created-to --died-from --died-to --attempts-min --attempts-max --by --by-header' ;;
    'amend') echo '--key --in --at --past --file --attempt' ;;
    'fire') echo '--key' ;;
    'count') echo '--key --event --by' ;;
    'cancel') echo '--key' ;;
    'worker') echo '--concurrency --lease --wait --consumer --retry-in --max-jobs --once' ;;
    'reserve') echo '--max --wait --lease --consumer --ack' ;;
    'nack') echo '--in --dead --reason' ;;
    'extend') echo '--lease' ;;
    'leases') echo '--limit --all --holder' ;;
    'lease revoke') echo '--key --attempt' ;;
    'topics') echo '--limit --offset --filter --sort --order' ;;
    'topic set') echo '--slots --capacity-jobs --capacity-bytes --lease --attempts --backoff --backoff-max --count --retention --paused --alert-due-jobs --alert-late --alert-stalled --alert-attempts --alert-push-failures --alert-dead-jobs --alert-future-jobs --alerts-off --sink --in-flight --rate --url --secret --sink-timeout --outage --batch --final-statuses --retry-4xx --kafka-topic --kafka-key --exchange --routing-key' ;;
    'topic purge') echo '--yes' ;;
    'topic drop') echo '--yes' ;;
    'dead list') echo '--limit --all --ids --id-prefix --key --header --payload --reason --reason-is --holder --due-from --due-to --created-from --created-to --died-from --died-to --attempts-min --attempts-max --sort' ;;
    'dead redrive') echo '--yes --key' ;;
    'dead remove') echo '--key' ;;
    'dead purge') echo '--yes' ;;
    'operate') echo '--state --ids --id-prefix --key --header --payload --reason --reason-is --holder --due-from --due-to --created-from --created-to --died-from --died-to --attempts-min --attempts-max --all --dry-run --shift --to --over --attempts --rate --matched-max --yes --no-wait' ;;
    'cluster') echo '--groups' ;;
    'watch') echo '--interval --count' ;;
    'load') echo '--from --to --step --by --next' ;;
    'clock advance') echo '--by --to' ;;
    'export') echo '--all --state --output --resume' ;;
    'import') echo '--topic --as-new --batch' ;;
    'token create') echo '--file --name --scope --certificate --topic-prefix' ;;
    'token list') echo '--file' ;;
    'token revoke') echo '--file' ;;
    'mysql migrate') echo '--password-file --tls-ca-file --tls-cert-file --tls-key-file' ;;
    'mysql check') echo '--password-file --tls-ca-file --tls-cert-file --tls-key-file' ;;
    'journal repair') echo '--output' ;;
  esac
}

# What compgen offers as the value of a command's flag.
_tocsin_values() {
  case "$1 $2" in
    'submit --past') echo "-W 'refuse fire'" ;;
    'submit --file') echo "-f" ;;
    'submit --trigger') echo "-W 'time count either'" ;;
    'submit --on-conflict') echo "-W 'reject replace keep'" ;;
    'list --state') echo "-W 'scheduled leased dead done cancelled ready'" ;;
    'list --sort') echo "-W 'none due created'" ;;
    'tally --state') echo "-W 'scheduled leased dead done cancelled ready'" ;;
    'tally --by') echo "-W 'nothing state reason key header minute'" ;;
    'amend --past') echo "-W 'refuse fire'" ;;
    'amend --file') echo "-f" ;;
    'topics --sort') echo "-W 'name ready scheduled leased dead bytes accepted delivered lateness'" ;;
    'topics --order') echo "-W 'asc desc'" ;;
    'topic set --paused') echo "-W 'yes no'" ;;
    'topic set --alerts-off') echo "-W 'yes no'" ;;
    'topic set --sink') echo "-W 'pull webhook kafka rabbitmq'" ;;
    'topic set --retry-4xx') echo "-W 'yes no'" ;;
    'dead list --sort') echo "-W 'none due created'" ;;
    'operate --state') echo "-W 'scheduled leased dead done cancelled ready'" ;;
    'load --by') echo "-W 'all topic'" ;;
    'export --state') echo "-W 'scheduled leased dead done cancelled'" ;;
    'export --output') echo "-f" ;;
    'token create --file') echo "-f" ;;
    'token create --scope') echo "-W 'submit consume admin observe'" ;;
    'token list --file') echo "-f" ;;
    'token revoke --file') echo "-f" ;;
    'mysql migrate --password-file') echo "-f" ;;
    'mysql migrate --tls-ca-file') echo "-f" ;;
    'mysql migrate --tls-cert-file') echo "-f" ;;
    'mysql migrate --tls-key-file') echo "-f" ;;
    'mysql check --password-file') echo "-f" ;;
    'mysql check --tls-ca-file') echo "-f" ;;
    'mysql check --tls-cert-file') echo "-f" ;;
    'mysql check --tls-key-file') echo "-f" ;;
    'journal repair --output') echo "-d" ;;
  esac
  case $2 in
    '--token-file') echo "-f" ;;
    '--ca') echo "-f" ;;
    '--cert') echo "-f" ;;
    '--cert-key') echo "-f" ;;
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
      --alert-attempts|--alert-dead-jobs|--alert-due-jobs|--alert-future-jobs|--alert-late|--alert-push-failures|--alert-stalled|--alerts-off|--at|--attempt|--attempts|--attempts-max|--attempts-min|--backoff|--backoff-max|--batch|--by|--by-header|--ca|--capacity-bytes|--capacity-jobs|--cert|--cert-key|--certificate|--concurrency|--consumer|--count|--created-from|--created-to|--died-from|--died-to|--due-from|--due-to|--event|--exchange|--file|--filter|--final-statuses|--from|--header|--holder|--id|--id-prefix|--ids|--in|--in-flight|--interval|--kafka-key|--kafka-topic|--key|--lease|--limit|--matched-max|--max|--max-jobs|--name|--next|--offset|--on-conflict|--order|--outage|--output|--over|--password-file|--past|--paused|--payload|--rate|--reason|--reason-is|--retention|--retry-4xx|--retry-in|--routing-key|--scope|--secret|--server|--shift|--sink|--sink-timeout|--slots|--sort|--state|--step|--timeout|--tls-ca-file|--tls-cert-file|--tls-key-file|--to|--token-file|--topic|--topic-prefix|--trigger|--url|--wait)
        [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))
        ((i++))
        ;;
      -*) ;;
      *)
        case $command in
          '') command=$word ;;
          clock|dead|journal|lease|mysql|operation|token|topic) command="$command $word" ;;
        esac
        ;;
    esac
  done
  COMPREPLY=()
  case $previous in
    --alert-attempts|--alert-dead-jobs|--alert-due-jobs|--alert-future-jobs|--alert-late|--alert-push-failures|--alert-stalled|--alerts-off|--at|--attempt|--attempts|--attempts-max|--attempts-min|--backoff|--backoff-max|--batch|--by|--by-header|--ca|--capacity-bytes|--capacity-jobs|--cert|--cert-key|--certificate|--concurrency|--consumer|--count|--created-from|--created-to|--died-from|--died-to|--due-from|--due-to|--event|--exchange|--file|--filter|--final-statuses|--from|--header|--holder|--id|--id-prefix|--ids|--in|--in-flight|--interval|--kafka-key|--kafka-topic|--key|--lease|--limit|--matched-max|--max|--max-jobs|--name|--next|--offset|--on-conflict|--order|--outage|--output|--over|--password-file|--past|--paused|--payload|--rate|--reason|--reason-is|--retention|--retry-4xx|--retry-in|--routing-key|--scope|--secret|--server|--shift|--sink|--sink-timeout|--slots|--sort|--state|--step|--timeout|--tls-ca-file|--tls-cert-file|--tls-key-file|--to|--token-file|--topic|--topic-prefix|--trigger|--url|--wait)
      offer=$(_tocsin_values "$command" "$previous")
      [ -n "$offer" ] && eval "COMPREPLY=(\$(compgen $offer -- \"\$current\"))"
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_tocsin_flags "$command") --server --token-file --ca --cert --cert-key --insecure --timeout --json --help" -- "$current"))
  elif offer=$(_tocsin_words "$command") && [ -n "$offer" ]; then
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _tocsin tocsin
