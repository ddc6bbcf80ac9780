#!/bin/bash
# An order that is not paid within 30 minutes is closed. A payment cancels the timeout, and the answer says definitely
# which of the two came first. For that the topic needs a retention: without it, a job that is done is forgotten at once
# and a cancel answers "unknown". Needs the `tocsin` command.
#
# TOCSIN_SERVER names the server. A virtual clock is advanced; with a real one, 30 minutes are 3 seconds.
set -euo pipefail

export TOCSIN_SERVER=${TOCSIN_SERVER:-http://127.0.0.1:7420}
topic=example.orders.$$-$RANDOM

fail() { echo "FAILED: $*" >&2; exit 1; }
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; } # of one line of JSON
# tocsin ends with 1 where the answer is no, which may be what we expect, and with more where there is no answer.
ask() { tocsin "$@" --json || [ $? -eq 1 ] || fail "tocsin $1"; }
outcome() { [ "$1" = "$2" ] || fail "expected $2, got '$1'"; echo "$3: $1"; }

status=0
tocsin clock advance --by 0s >/dev/null 2>&1 || status=$?
case $status in
  0) timeout=30m; pass() { tocsin clock advance --by "$1" >/dev/null; } ;;
  1) timeout=3s; pass() { sleep "${1%s}"; } ;;
  *) fail "no server at $TOCSIN_SERVER" ;;
esac

tocsin topic set "$topic" --retention 1d >/dev/null
trap 'tocsin topic drop "$topic" --yes >/dev/null' EXIT

for order in A-1 A-2; do
  tocsin submit "$topic" "close order $order" --id "$order" --in "$timeout"
done

# A-1 is paid: from this answer on its timeout will never be delivered.
outcome "$(ask cancel "$topic" A-1 | field outcome)" cancelled "A-1 paid, timeout"

pass "$timeout"
echo "30 minutes pass"
job=$(ask reserve "$topic" --wait 5s)
[ "$(field id <<<"$job")" = A-2 ] || fail "expected the timeout of A-2, got '$job'"
echo "delivered: $(field payload <<<"$job")"

# A payment that comes now is too late, and the answer says so: the consumer is closing the order.
outcome "$(ask cancel "$topic" A-2 | field outcome)" in_flight "A-2 paid too late, timeout"

tocsin ack "$topic" "$(field token <<<"$job")" >/dev/null || fail "ack"
echo "A-2 is closed"
# Later still: the order was closed. Refund the payment.
outcome "$(ask cancel "$topic" A-2 | field outcome)" finished "A-2 paid even later, timeout"
[ -z "$(ask reserve "$topic" 2>/dev/null)" ] || fail "something else was delivered"
echo "nothing else is delivered"
