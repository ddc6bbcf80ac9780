"""A real Redis Cluster for end-to-end tests: 3 masters and a replica of each, made by its own commands, and resharding."""

import pathlib

import redis

from programs import wait_for
from redis_servers import HASH_SLOTS, LOOK_S, RedisServer, everywhere, fields, in_step


class RedisCluster:
    """The first three nodes begin as masters, with a third of the hash slots each."""

    def __init__(self, folder, place_of=everywhere, lines=(), node_timeout_ms=1000):
        # A replica takes over however long it was without its master: a busy machine must not keep it from that.
        lines = [f"cluster-node-timeout {node_timeout_ms}", "cluster-replica-validity-factor 0", *lines]
        self.nodes = []
        try:
            for i in range(6):
                place = place_of(f"node{i}")
                self.nodes.append(RedisServer(pathlib.Path(folder) / f"node{i}", lines, place=place, kind="node"))
            self._introduce()
            for master, replica in zip(self.nodes[:3], self.nodes[3:]):
                replica.ask("CLUSTER", "REPLICATE", self._id(master))
            self.wait_until_ok()
            self.wait_until_in_step()
        except BaseException:
            self.close()
            raise

    def _introduce(self):
        """Slots and epochs first, while no node knows another; then every pair meets, which spares the time of gossip."""
        for i, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < 3:
                node.ask("CLUSTER", "ADDSLOTSRANGE", HASH_SLOTS * i // 3, HASH_SLOTS * (i + 1) // 3 - 1)
        for i, node in enumerate(self.nodes):
            for other in self.nodes[i + 1 :]:
                node.ask("CLUSTER", "MEET", other.host, other.port, other.bus_port)

        def met(node):
            seen = self._seen_by(node)
            return len(seen) == len(self.nodes) and all(one["flags"] == "master" for one in seen.values())

        wait_for(lambda: all(map(met, self.nodes)), what="the nodes' knowledge of each other")

    @staticmethod
    def _id(node):
        return node.ask("CLUSTER", "MYID")

    @staticmethod
    def _seen_by(node):
        """CLUSTER NODES: address -> flags, master, epoch and ranges of slots; a slot that moves is left where it was."""
        try:
            text = node.ask("CLUSTER", "NODES", timeout_s=LOOK_S) if node.awake else ""
        except redis.RedisError:
            return {}
        seen = {}
        for line in text.splitlines():
            _, address, flags, master, _, _, epoch, _, *ranges = line.split()
            seen[address.split("@")[0]] = {
                "flags": flags.replace("myself,", ""),
                "master": master,
                "epoch": epoch,
                "slots": [tuple(map(int, one.split("-"))) for one in ranges if not one.startswith("[")],
            }
        return seen

    def flags(self):
        endpoints = ",".join(node.address for node in self.nodes)
        return ["--store", "redis", "--redis-mode", "cluster", "--redis-endpoints", endpoints]

    def at(self, address):
        return next(node for node in self.nodes if node.address == address)

    def masters(self):
        return [node for node in self.nodes if node.is_master()]

    def master_of(self, hash_slot):
        """The node that serves the hash slot, as the first node says that is awake and knows."""
        for node in self.nodes:
            for address, one in self._seen_by(node).items():
                if any(span[0] <= hash_slot <= span[-1] for span in one["slots"]):
                    return self.at(address)
        raise AssertionError(f"nobody serves the hash slot {hash_slot}")

    def wait_for_new_master(self, hash_slot, old, within_s=30):
        def taken():
            found = self.master_of(hash_slot)
            return found if found is not old and found.is_master() else None

        return wait_for(taken, within_s, f"a new master of the hash slot {hash_slot}")

    def _agreed(self):
        awake = [node for node in self.nodes if node.awake]
        views = [self._seen_by(node) for node in awake]
        return all(views) and all(view == views[0] for view in views) and all(map(self._is_ok, awake))

    @staticmethod
    def _is_ok(node):
        try:
            return fields(node.ask("CLUSTER", "INFO"))["cluster_state"] == "ok"
        except redis.RedisError:
            return False

    def wait_until_ok(self, within_s=30):
        """Until every node that is awake says that the Cluster is ok, and they agree on who serves what."""
        wait_for(self._agreed, within_s, "a Cluster that is ok")

    def wait_until_in_step(self, within_s=30):
        wait_for(lambda: in_step(self.nodes), within_s, "replicas that are in step")

    def begin_migration(self, hash_slot, to):
        """The slot's keys are then on either side, until move_keys has moved them and end_migration tells everybody."""
        source = self.master_of(hash_slot)
        to.ask("CLUSTER", "SETSLOT", hash_slot, "IMPORTING", self._id(source))
        source.ask("CLUSTER", "SETSLOT", hash_slot, "MIGRATING", self._id(to))
        return source

    def move_keys(self, hash_slot, source, to, count=100):
        """Moves up to `count` keys; how many. 0: none is left."""
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", hash_slot, count)
        if keys:
            source.ask("MIGRATE", to.host, to.port, "", 0, 5000, "KEYS", *keys)
        return len(keys)

    def end_migration(self, hash_slot, source, to):
        """The new master first, so that nobody is sent to a node that does not serve the slot yet. Then everybody has to know
        its epoch: a node that takes the slot next, and has not heard of it, would give itself no higher one, and drop the
        slot with its keys when it hears of it."""
        others = [node for node in self.masters() if node not in (source, to)]
        for node in [to, source, *others]:
            node.ask("CLUSTER", "SETSLOT", hash_slot, "NODE", self._id(to))
        self.wait_until_ok()

    def migrate(self, hash_slot, to):
        source = self.begin_migration(hash_slot, to)
        while self.move_keys(hash_slot, source, to):
            pass
        self.end_migration(hash_slot, source, to)

    def close(self):
        for node in self.nodes:
            node.close()
