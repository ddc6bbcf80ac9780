#!/bin/bash
# Index a document 5 seconds after its last change: every change submits the same id with on_conflict replace, which puts
# a new timer in the place of the old one in one step. However many changes, one delivery. Needs curl.
#
# TOCSIN_SERVER names the server. A virtual clock is advanced; with a real one, 5 seconds are 2.
set -euo pipefail

server=${TOCSIN_SERVER:-http://127.0.0.1:7420}
topic=example.index.$$-$RANDOM

fail() { echo "FAILED: $*" >&2; exit 1; }
# A call with a method, a path and a body; the answer on stdout. Errors of the server too: we look at what it says.
call() {
  curl -sS --max-time 30 ${TOCSIN_TOKEN:+-H "Authorization: Bearer $TOCSIN_TOKEN"} -X "$1" -d "${3:-{\}}" "$server$2" ||
    fail "no server at $server"
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
due() { sed -n 's/.*"due_ms":\([0-9]*\).*/\1/p'; }

case $(call POST /v1/clock/advance '{"ms":0}') in
  *now_ms*) quiet_ms=5000; pass() { call POST /v1/clock/advance "{\"ms\":$1}" >/dev/null; } ;;
  *not_found*) quiet_ms=2000; pass() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; } ;;
  *) fail "the server at $server does not answer as expected" ;;
esac
trap 'call DELETE "/v1/topics/$topic" >/dev/null' EXIT

last_due=0
for version in 1 2 3; do
  answer=$(call POST "/v1/topics/$topic/jobs" \
    "{\"id\":\"doc-7\",\"payload\":\"version $version\",\"delay_ms\":$quiet_ms,\"on_conflict\":\"replace\"}")
  [ "$(field outcome <<<"$answer")" = accepted ] || fail "submit: $answer"
  [ "$(due <<<"$answer")" -gt "$last_due" ] || fail "the timer did not start anew: $answer"
  last_due=$(due <<<"$answer")
  echo "doc-7 changed to version $version: to be indexed at $last_due"
  [ $version -eq 3 ] || pass $((quiet_ms / 2))
done

early=$(call POST "/v1/topics/$topic/reserve")
[ "$early" = '{"jobs":[]}' ] || fail "delivered although it was changed just now: $early"
pass "$quiet_ms"
job=$(call POST "/v1/topics/$topic/reserve" '{"wait_ms":5000,"max":10}')
[ "$(grep -o '"token"' <<<"$job" | wc -l)" -eq 1 ] || fail "expected one delivery: $job"
[ "$(field payload <<<"$job")" = "version 3" ] || fail "expected version 3: $job"
echo "indexed: doc-7, $(field payload <<<"$job")"

answer=$(call POST "/v1/topics/$topic/ack" "{\"tokens\":[\"$(field token <<<"$job")\"]}")
[ "$(field outcome <<<"$answer")" = ok ] || fail "ack: $answer"
echo "three changes, one delivery"
