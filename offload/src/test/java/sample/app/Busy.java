package sample.app;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.springframework.stereotype.Service;
import sample.library.Store;

/** A service whose calls are followed. */
@Service
public class Busy {
  /** What a call gives. */
  public record Answer(String name, List<Double> values, Map<String, Integer> counts) {}

  static int served;

  private final System.Logger log;
  private final Store store;
  private final List<Integer> kept = new ArrayList<>(List.of(1, 2, 3));
  private final int[] numbers = new int[3];
  private final CountDownLatch held = new CountDownLatch(1);
  private int calls;

  /** Makes one. */
  public Busy(System.Logger log, Store store) {
    this.log = log;
    this.store = store;
  }

  /** Computes, and changes something of each kind. */
  public Answer pure(int number, long wide) {
    log.log(System.Logger.Level.INFO, "pure " + number);
    List<Double> values = new ArrayList<>();
    double value = wide;
    for (int i = 0; i < 400_000; i++) {
      value = Math.sqrt(value * i + number);
      if (i % 100_000 == 0) {
        values.add(value);
      }
    }
    synchronized (this) {
      calls++;
      served++;
      numbers[1]++;
      kept.add(kept.size());
    }
    store.save("pure", values); // nothing comes back
    return new Answer("pure " + kept.get(0), values, new TreeMap<>(Map.of("number", number)));
  }

  /** Needs so much CPU time that it is worth it. */
  public int heavy(int number) {
    int value = number;
    for (int i = 0; i < 40_000_000; i++) {
      value = value * 31 + (value >>> 3);
    }
    return value;
  }

  /** Never gives the same. */
  public long time() {
    return System.nanoTime();
  }

  /** Needs the result of an effect. */
  public Object effect() {
    return store.load("pure") != null;
  }

  /** Throws always the same. */
  public Object failing() {
    throw new IllegalStateException("failed", new IllegalArgumentException("as ever"));
  }

  /** Runs until another thread lets it go. */
  public void held() throws InterruptedException {
    held.await();
  }

  /** Lets it go. */
  private void release() {
    held.countDown();
  }

  /** Is no root, as it goes on after it has returned. */
  public CompletableFuture<Object> later() {
    release();
    return CompletableFuture.completedFuture(null);
  }

  /** What calls have changed. */
  @Override
  public String toString() {
    return calls + " " + served + " " + numbers[1] + " " + kept.size();
  }
}
