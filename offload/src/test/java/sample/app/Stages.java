package sample.app;

import java.util.ArrayList;
import java.util.List;
import sample.library.Store;

/** An application whose root does something of each kind, one after the other. */
public class Stages {
  private final List<Integer> numbers = new ArrayList<>();
  private final System.Logger log;
  private final Store store;
  private int total;

  /** Makes one. */
  public Stages(System.Logger log, Store store) {
    this.log = log;
    this.store = store;
  }

  private static final class Sum {
    static int sums;
    int value;
  }

  /** The root. */
  public String work(int number) {
    log.log(System.Logger.Level.INFO, "begin {0}", number);
    numbers.add(number);
    Sum sum = new Sum();
    numbers.forEach(one -> sum.value += one);
    log.log(System.Logger.Level.INFO, "sum " + sum.value + " of " + System.getProperty("sample.only"));
    synchronized (this) {
      total += sum.value;
      Sum.sums++;
    }
    log.log(System.Logger.Level.INFO, "counted");
    store.save("sum", sum.value);
    log.log(System.Logger.Level.INFO, "saved");
    return numbers + " " + total + " " + Sum.sums + " " + "x".repeat(100_000);
  }
}
