"""The client redis-py, unchanged, against the door for Redis clients of a running server, in RESP2 and RESP3."""

from __future__ import annotations

import os
import threading
import unittest

import redis


class Scenarios:
    """What is tested once for each protocol."""

    protocol = 0

    def setUp(self) -> None:
        """Open clients, which end with the test."""
        self.clients: list[redis.Redis] = []
        self.client, self.other = self.open(), self.open()

    def tearDown(self) -> None:
        """Close them."""
        for client in self.clients:
            client.close()

    def open(self) -> redis.Redis:
        """Open a client."""
        client = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=self.protocol, decode_responses=True)
        self.clients.append(client)
        return client

    def key(self, name: str) -> str:
        """Name a key of this test's own."""
        return f"{self.id()}/{name}"

    def test_values_of_all_types(self) -> None:
        """Types are converted as with Redis."""
        c, key = self.client, self.key
        self.assertTrue(c.set(key("s"), "v", ex=100, nx=True))
        self.assertIsNone(c.set(key("s"), "w", nx=True))
        self.assertEqual(c.ttl(key("s")), 100)
        c.hset(key("h"), mapping={"a": 1, "b": 2})
        self.assertEqual(c.hgetall(key("h")), {"a": "1", "b": "2"})
        c.rpush(key("l"), 1, 2, 3)
        self.assertEqual(c.lrange(key("l"), 0, -1), ["1", "2", "3"])
        self.assertEqual(c.sort(key("l"), desc=True), ["3", "2", "1"])
        c.sadd(key("set"), "x", "y")
        self.assertEqual(c.smembers(key("set")), {"x", "y"})
        c.zadd(key("z"), {"a": 1.5, "b": 2})
        self.assertEqual([tuple(pair) for pair in c.zrange(key("z"), 0, -1, withscores=True)], [("a", 1.5), ("b", 2)])
        self.assertEqual(c.type(key("z")), "zset")
        self.assertTrue(c.rename(key("z"), key("y")))
        with self.assertRaisesRegex(redis.ResponseError, "wrong kind of value"):
            c.lpush(key("s"), "x")

    def test_pipeline_is_a_transaction(self) -> None:
        """pipeline() is MULTI and EXEC; errors inside do not end the others."""
        c, key = self.client, self.key
        with c.pipeline() as p:
            self.assertEqual(
                p.set(key("a"), 1).incr(key("a")).hset(key("h"), "f", "v").hgetall(key("h")).execute(),
                [True, 2, 1, {"f": "v"}],
            )
            p.set(key("a"), "x").incr(key("a")).set(key("b"), "y")
            with self.assertRaisesRegex(redis.ResponseError, "not an integer"):
                p.execute()
            self.assertEqual(c.get(key("b")), "y")
            p.set(key("c"), 1).execute_command("NONSENSE")
            with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
                p.execute()
            self.assertIsNone(c.get(key("c")))

    def test_locks(self) -> None:
        """A lock, which is released by a script, and only by its holder."""
        name = self.key("lock")
        lock = self.client.lock(name, timeout=100)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertFalse(self.other.lock(name, timeout=100).acquire(blocking=False))
        self.assertTrue(lock.extend(100) and lock.reacquire())
        lock.release()
        with self.other.lock(name, timeout=100):
            self.assertTrue(self.client.exists(name))
        self.client.set(name, "stolen")
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()

    def test_scripts(self) -> None:
        """A rate limiter, and a queue whose script makes up the names of its records."""
        limit = self.client.register_script(
            "local n = redis.call('INCR', KEYS[1]) "
            "if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end "
            "if n > tonumber(ARGV[1]) then return redis.error_reply('LIMIT reached') end return n"
        )
        for n in (1, 2):
            self.assertEqual(limit(keys=[self.key("rate")], args=[2, 100000]), n)
        with self.assertRaisesRegex(redis.ResponseError, "LIMIT reached"):
            limit(keys=[self.key("rate")], args=[2, 100000], client=self.other)
        self.assertEqual(self.client.get(self.key("rate")), "3")
        add = self.client.register_script(
            "local job = ARGV[1] .. ':' .. redis.call('INCR', KEYS[1]) "
            "redis.call('HSET', job, 'data', cjson.encode({name = ARGV[2], tries = 1})) "
            "redis.call('LPUSH', ARGV[1] .. ':wait', job) return job"
        )
        job = add(keys=[self.key("id")], args=[self.key("jobs"), "mail"])
        self.assertEqual(self.client.rpop(self.key("jobs") + ":wait"), job)
        self.assertIn('"mail"', self.client.hget(job, "data"))
        with self.client.pipeline() as p:
            p.set(self.key("rate"), 0)
            limit(keys=[self.key("rate")], args=[9, 100000], client=p)
            self.assertEqual(p.execute(), [True, 1])

    def test_pipeline_without_transaction(self) -> None:
        """Many commands in one go."""
        with self.client.pipeline(transaction=False) as p:
            for i in range(500):
                p.incrby(self.key("n"), i)
            p.lpush(self.key("n"), "x")
            p.get(self.key("n"))
            replies = p.execute(raise_on_error=False)
        self.assertEqual(replies[499], 500 * 499 // 2)
        self.assertIsInstance(replies[500], redis.ResponseError)
        self.assertEqual(replies[501], str(500 * 499 // 2))

    def test_conflict(self) -> None:
        """A watched key that another client has changed."""
        key = self.key("k")
        with self.client.pipeline() as p:
            p.watch(key)
            self.assertIsNone(p.get(key))
            self.other.set(key, "theirs")
            p.multi()
            p.set(key, "mine")
            with self.assertRaises(redis.WatchError):
                p.execute()
            p.watch(key)
            self.other.set(key, "theirs again")
            self.other.delete(key)
            p.unwatch()
            p.watch(key)
            p.multi()
            p.set(key, "mine")
            self.assertEqual(p.execute(), [True])
        self.assertEqual(self.client.get(key), "mine")

    def test_optimistic_locks(self) -> None:
        """Loops that try again lose no update."""
        key, log = self.key("n"), self.key("log")
        tries = []

        def work() -> None:
            client = self.open()

            def add(p: redis.client.Pipeline) -> None:
                tries.append(1)
                n = int(p.get(key) or 0)
                p.multi()
                p.set(key, n + 1)
                p.rpush(log, n)

            for _ in range(20):
                client.transaction(add, key)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.get(key), "80")
        self.assertEqual(self.client.lrange(log, 0, -1), [str(i) for i in range(80)])
        self.assertGreater(len(tries), 80)

    def test_scans(self) -> None:
        """The iterators show everything once, and what is deleted meanwhile hides nothing."""
        c, key = self.client, self.key
        names = [key(f"many/{i}") for i in range(250)]
        c.mset(dict.fromkeys(names, "1"))
        self.assertEqual(sorted(c.scan_iter(match=key("many/*"), count=20)), sorted(names))
        self.assertEqual(sorted(c.keys(key("many/*"))), sorted(names))
        for name in c.scan_iter(match=key("many/*"), count=20):
            c.delete(name)
        self.assertEqual(list(c.scan_iter(match=key("many/*"))), [])
        c.zadd(key("z"), {name: i for i, name in enumerate(names)})
        self.assertEqual(dict(c.zscan_iter(key("z"))), {name: float(i) for i, name in enumerate(names)})
        c.sadd(key("s"), *range(1000))
        self.assertEqual(len(set(c.sscan_iter(key("s"), count=7))), 1000)

    def test_waiting(self) -> None:
        """A worker takes what others push."""
        queue = self.key("queue")
        taken: list[object] = []
        worker = threading.Thread(target=lambda: taken.append(self.client.blpop([self.key("none"), queue], timeout=0)))
        worker.start()
        self.other.rpush(queue, "job")
        worker.join()
        self.assertEqual([list(item) for item in taken], [[queue, "job"]])
        self.assertIsNone(self.client.blpop(queue, timeout=0.02))

    def test_channels(self) -> None:
        """Messages reach all who listen."""
        with self.client.pubsub() as listener:
            listener.subscribe(self.key("news"))
            listener.psubscribe(self.key("n*"))
            kinds = [listener.get_message(timeout=60)["type"] for _ in range(2)]
            self.assertEqual(kinds, ["subscribe", "psubscribe"])
            self.assertEqual(self.other.publish(self.key("news"), "one"), 2)
            heard = [listener.get_message(timeout=60) for _ in range(2)]
            self.assertEqual([(m["type"], m["data"]) for m in heard], [("message", "one"), ("pmessage", "one")])
            self.assertEqual(self.other.pubsub_numsub(self.key("news")), [(self.key("news"), 1)])

    def test_expiry(self) -> None:
        """The options of EXPIRE."""
        c, key = self.client, self.key("k")
        c.set(key, "v")
        self.assertFalse(c.expire(key, 100, xx=True))
        self.assertTrue(c.expire(key, 100, nx=True))
        self.assertFalse(c.expire(key, 50, gt=True))
        self.assertTrue(c.expire(key, 50, lt=True))
        self.assertTrue(c.persist(key))
        self.assertTrue(c.pexpire(key, 0))
        self.assertFalse(c.exists(key))


class RESP2(Scenarios, unittest.TestCase):
    """In RESP2."""

    protocol = 2


class RESP3(Scenarios, unittest.TestCase):
    """In RESP3."""

    protocol = 3


if __name__ == "__main__":
    unittest.main()
