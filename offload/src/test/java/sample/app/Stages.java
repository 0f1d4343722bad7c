package sample.app;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import sample.library.Store;

/** An application whose root does something of each kind, one after the other. */
public class Stages {
  private final List<Integer> numbers = new ArrayList<>();
  private final Map<String, Integer> rates = new ConcurrentHashMap<>(Map.of("a", 0, "b", 0));
  private final System.Logger log;
  private final Store store;
  private final ReentrantLock lock = new ReentrantLock();
  private int total;

  /** Makes one. */
  public Stages(System.Logger log, Store store) {
    this.log = log;
    this.store = store;
  }

  /** Whether a call holds the lock. */
  public boolean isLocked() {
    return lock.isLocked();
  }

  private static final class Sum {
    static int sums;
    int value;
  }

  /** The root. */
  public String work(int number) {
    log.log(System.Logger.Level.INFO, "begin {0}", number);
    Sum sum = new Sum();
    for (int rate : rates.values()) { // reads, which a repetition may do once more
      sum.value += rate;
    }
    store.names();
    numbers.add(number);
    numbers.forEach(one -> sum.value += one);
    log.log(System.Logger.Level.INFO, "sum " + sum.value + " of " + System.getProperty("sample.only"));
    synchronized (this) {
      lock.lock();
      try {
        total += sum.value;
        Sum.sums++;
      } finally {
        lock.unlock();
      }
    }
    log.log(System.Logger.Level.INFO, "counted");
    store.save("sum", sum.value);
    log.log(System.Logger.Level.INFO, "saved");
    return numbers + " " + total + " " + Sum.sums + " " + "x".repeat(100_000);
  }
}
