#!/usr/bin/python3
"""How evenly nodes and masters of Redis share the groups.

  tools/balance.py [--sets 9] [--nodes 3,16,64,100] [--groups 64,256,1024,4096] [--masters 3,16,64]

Prints the two tables of docs/operations.md. Nodes: the smallest and the largest share of a node, as the median over sets of
members with random ids. Masters: the same for masters that divide the hash slots as `redis-cli --cluster create` does.
Computes what src/model/placement.cc and src/storage/redis/groups.cc compute, and first checks itself against the assignment
that placement_test.cc pins.
"""

import argparse
import random
import statistics
import sys

WORD = (1 << 64) - 1
HASH_SLOTS = 16384
PINNED = "cbbbbacbacbbcacabccacbcaccabcbbbbcbbcbbbcbbcaabbccbcbaabbabcbbac"  # of the members a, b and c


def mix(a, b):
    product = (a ^ 0x9E3779B97F4A7C15) * (b ^ 0xD6E8FEB86659FD93)
    return (product & WORD) ^ (product >> 64)


def hash64(text):
    data = text.encode()
    word = lambda part: int.from_bytes(part, "little")  # noqa: E731
    found, at = mix(0, len(data)), 0
    while len(data) - at >= 16:
        found = mix(word(data[at:at + 8]) ^ found, word(data[at + 8:at + 16]))
        at += 16
    left = data[at:]
    if len(left) > 8:
        return mix(word(left[:8]) ^ found, word(left[8:]))
    return mix(found ^ word(left), len(left))


def owners(groups, ids):
    """The index of the owner of each group."""
    hashes = [hash64(one) for one in ids]
    ranks = ([mix(mix(one, group), group) for one in hashes] for group in range(groups))
    return [max(range(len(ids)), key=rank.__getitem__) for rank in ranks]


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def hash_slots(prefix, groups):
    """The hash slot of each part that has a group."""
    part, found, number = HASH_SLOTS // groups, {}, 0
    while len(found) < groups:
        slot = crc16(f"{prefix}.{number}".encode()) % HASH_SLOTS
        found.setdefault(slot // part, slot)
        number += 1
    return list(found.values())


def extremes(places, count):
    shares = [0] * count
    for place in places:
        shares[place] += 1
    return min(shares), max(shares)


def shown(groups, count, found):
    return f"{groups / count:.1f}: {found[0]:g} to {found[1]:g}".replace(".0:", ":")


def node_cell(groups, nodes, sets):
    chance = random.Random(nodes * groups)
    found = []
    for _ in range(sets):
        ids = sorted(f"node-{number}-{chance.getrandbits(32):08x}" for number in range(nodes))
        found.append(extremes(owners(groups, ids), nodes))
    return shown(groups, nodes, [statistics.median(one) for one in zip(*found)])


def master_cell(groups, masters):
    places = [slot * masters // HASH_SLOTS for slot in hash_slots("tocsin", groups)]
    return shown(groups, masters, extremes(places, masters))


def table(what, counts, groups, cell):
    print(f"| {what} | " + " | ".join(f"{one} groups" for one in groups) + " |")
    print("|---" * (len(groups) + 1) + "|")
    for count in counts:
        print(f"| {count} | " + " | ".join(cell(one, count) for one in groups) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--sets", type=int, default=9)
    parser.add_argument("--nodes", type=numbers, default=[3, 16, 64, 100])
    parser.add_argument("--groups", type=numbers, default=[64, 256, 1024, 4096])
    parser.add_argument("--masters", type=numbers, default=[3, 16, 64])
    args = parser.parse_args()
    if "".join("abc"[one] for one in owners(64, ["a", "b", "c"])) != PINNED:
        sys.exit("this does not compute what the program computes")
    table("nodes", args.nodes, args.groups, lambda groups, count: node_cell(groups, count, args.sets))
    print()
    table("masters", args.masters, args.groups, master_cell)


if __name__ == "__main__":
    main()
