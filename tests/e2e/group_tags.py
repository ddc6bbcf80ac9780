"""The hash tag of each of 64 groups, as src/storage/redis/groups.h has them for the prefix tocsin."""

import redis.crc

GROUPS, BITS = 64, 6


def _tags():
    tags, number = {}, 0
    while len(tags) < GROUPS:
        tag = f"{{tocsin.{number}}}"
        part = redis.crc.key_slot(tag.encode()) * GROUPS // 16384
        tags.setdefault(int(f"{part:0{BITS}b}"[::-1], 2), tag)
        number += 1
    return tags


TAGS = _tags()
NUMBERS = {tag: group for group, tag in TAGS.items()}
