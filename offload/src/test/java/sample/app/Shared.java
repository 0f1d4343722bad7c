package sample.app;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** What several threads change at once: in the application, and in two instances of the function. Each method adds one. */
public class Shared {
  enum Kind {
    ONE;

    private int uses;
  }

  static final class Node {
    int value;
    Node next;
  }

  private static int total;
  private static final Map<String, Integer> BY_NAME = new HashMap<>();
  private static final AtomicLong ATOMIC = new AtomicLong();

  private final AtomicInteger atomic = new AtomicInteger();
  private final LongAdder adder = new LongAdder();
  private final Map<String, Integer> concurrent = new ConcurrentHashMap<>();
  private final Map<String, Integer> synchronizedMap = Collections.synchronizedMap(new TreeMap<>());
  private final List<Integer> copied = new CopyOnWriteArrayList<>();
  private final List<Integer> vector = new Vector<>();
  private final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
  private final ReentrantLock lock = new ReentrantLock();
  private final ReentrantReadWriteLock readWrite = new ReentrantReadWriteLock();
  private final List<Integer> list = new ArrayList<>();
  private final Map<String, Integer> map = new HashMap<>();
  private final StringBuilder text = new StringBuilder();
  private final ArrayDeque<Integer> turns = new ArrayDeque<>();
  private final int[] numbers = new int[4];
  private final Object[] objects = {0};
  private Node first;
  private int underLock;
  private int underWrite;
  private int plain;
  private long wide;
  private volatile int seen;
  private volatile boolean isOver;

  public Object atomics() {
    ATOMIC.incrementAndGet();
    return atomic.incrementAndGet();
  }

  public Object adders() {
    adder.increment();
    return concurrent.merge("a", 1, Integer::sum);
  }

  public Object collections() {
    vector.add(1);
    queue.add(1);
    copied.add(1);
    return synchronizedMap.merge("s", 1, Integer::sum);
  }

  public synchronized Object monitors() {
    plain++;
    wide += 1L << 33;
    list.add(plain);
    return map.merge("m", 1, Integer::sum);
  }

  public Object statics() {
    synchronized (Shared.class) {
      BY_NAME.merge("b", 1, Integer::sum);
      return total++;
    }
  }

  private static synchronized int raise() {
    return ++Kind.ONE.uses;
  }

  public Object enums() {
    return raise();
  }

  public Object locks() {
    lock.lock();
    try {
      text.append('x');
      return ++underLock;
    } finally {
      lock.unlock();
    }
  }

  public Object writeLocks() {
    readWrite.writeLock().lock();
    try {
      return ++underWrite;
    } finally {
      readWrite.writeLock().unlock();
    }
  }

  public Object arrays() {
    synchronized (numbers) {
      numbers[2]++;
      objects[0] = (Integer) objects[0] + 1;
      Node node = new Node();
      node.value = numbers[2];
      node.next = first;
      first = node;
      return numbers[2];
    }
  }

  /** Waits a little for another thread's turn. */
  public Object waiting() throws InterruptedException {
    synchronized (turns) {
      turns.add(1);
      turns.notifyAll();
      int before = turns.size();
      for (int i = 0; i < 3 && turns.size() == before; i++) {
        turns.wait(10);
      }
      return turns.size();
    }
  }

  /** Ends the call that spins. */
  public void over() {
    isOver = true;
  }

  /** Spins until the application has set a flag. */
  public Object volatiles() {
    seen = 1;
    while (!isOver) {
      Thread.onSpinWait();
    }
    return seen;
  }

  /** The sums, by name, that have to be the number of calls. */
  public Map<String, Object> sums() {
    int length = 0;
    int last = Integer.MAX_VALUE;
    for (Node node = first; node != null && node.value < last; node = node.next) {
      last = node.value;
      length++;
    }
    Map<String, Object> sums = new TreeMap<>();
    sums.put("ATOMIC", ATOMIC.get());
    sums.put("atomic", atomic.get());
    sums.put("adder", adder.sum());
    sums.put("concurrent", concurrent.get("a"));
    sums.put("vector", vector.size());
    sums.put("queue", queue.size());
    sums.put("copied", copied.size());
    sums.put("synchronizedMap", synchronizedMap.get("s"));
    sums.put("plain", plain);
    sums.put("wide", wide >> 33);
    sums.put("list", new ArrayList<>(new java.util.HashSet<>(list)).size());
    sums.put("map", map.get("m"));
    sums.put("total", total);
    sums.put("BY_NAME", BY_NAME.get("b"));
    sums.put("uses", Kind.ONE.uses);
    sums.put("underLock", underLock);
    sums.put("text", text.length());
    sums.put("underWrite", underWrite);
    sums.put("numbers", numbers[2]);
    sums.put("objects", objects[0]);
    sums.put("nodes", length);
    sums.put("turns", turns.size());
    return sums;
  }
}
