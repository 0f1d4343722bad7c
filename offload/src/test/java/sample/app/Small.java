package sample.app;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A root with one call of each kind. */
public class Small {
  private final List<Integer> list = new ArrayList<>();
  private final AtomicInteger sum = new AtomicInteger();
  private String name;

  /** Counts up. */
  public Object count(int most) {
    synchronized (list) {
      for (int i = 1; i <= most; i++) {
        list.add(i);
        sum.addAndGet(i);
      }
    }
    name = list + " of " + sum.get();
    return name;
  }
}
