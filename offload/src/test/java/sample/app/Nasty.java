package sample.app;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/** Roots that are not supported: each has to run on the server, and to name the reason. */
public class Nasty {
  private static final AtomicIntegerFieldUpdater<Nasty> UPDATER = AtomicIntegerFieldUpdater.newUpdater(Nasty.class, "updated");

  record Pair(StringBuilder left, int right) {}

  private final StringBuilder text = new StringBuilder("abc");
  private final AtomicInteger counter = new AtomicInteger(3);
  private final BitSet bits = BitSet.valueOf(new long[] {6});
  volatile int updated;
  private Object held;

  /** Gives an opaque object to code of the JDK as a parameter. */
  public Object builderToJdk() {
    return new StringBuilder(text).reverse().toString();
  }

  public Object builderToString() {
    return "is " + text;
  }

  public Object builderInList() {
    List<Object> list = new ArrayList<>();
    list.add(text);
    return list.toString();
  }

  public Object counterInArray() {
    return String.format("%s %s", counter, 1);
  }

  public Object counterFromLambda() {
    List<Integer> one = new ArrayList<>(List.of(1));
    return one.stream().map(each -> (Object) counter).toList().toString();
  }

  public Object boundReference() {
    java.util.function.Supplier<String> supplier = text::toString;
    return supplier.get();
  }

  public Object bitsPeeked() {
    BitSet own = new BitSet();
    own.or(bits);
    return own.toString();
  }

  public Object listHoldsBuilder() {
    held = new ArrayList<>(List.of(text));
    return held.toString();
  }

  public Object threads() throws InterruptedException {
    int[] got = new int[1];
    Thread thread = new Thread(() -> got[0] = counter.get());
    thread.start();
    thread.join();
    return got[0];
  }

  public Object parallel() {
    return List.of(1, 2, 3).parallelStream().mapToInt(each -> each).sum();
  }

  public Object updater() {
    return UPDATER.incrementAndGet(this);
  }

  public Object swallowed() {
    try {
      return "is " + text;
    } catch (Throwable e) {
      return "swallowed";
    }
  }

  public Object files() {
    return new java.io.File("/").exists();
  }

  public Object hashMapOfMade() {
    HashMap<String, Object> map = new HashMap<>();
    map.put("b", counter);
    return map.toString();
  }
}
