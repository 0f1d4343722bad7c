package sample.app;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.ref.WeakReference;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.Date;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import sample.library.Base;
import sample.library.Store;

/** The rows of the rules' table: each root has to be answered by a function, as here. */
public class Rows {
  enum Level {
    LOW, HIGH
  }

  @Retention(RetentionPolicy.RUNTIME)
  @interface Graded {
    Level value() default Level.HIGH;

    Class<?>[] types() default {};
  }

  @Graded(types = Rows.class)
  static class Marked {
    int value = 1;
  }

  sealed interface Shape permits Circle, Square {}

  record Circle(double radius) implements Shape {}

  record Square(double side, List<Circle> holes) implements Shape {}

  static class Box implements Cloneable {
    String name;
    Box next;

    Box(String name) {
      this.name = name;
    }

    @Override
    public Box clone() {
      try {
        return (Box) super.clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }

  static class Failing {
    static int made;
    int held;

    synchronized void fail(Store store) {
      held++;
      if (!store.holds(this)) {
        throw new IllegalStateException("not held");
      }
      throw new IllegalArgumentException("failed " + held);
    }
  }

  static final Map<String, Box> REGISTRY = new HashMap<>();

  final Collection4 collections = new Collection4();
  private final Properties properties = new Properties();
  private final StringBuffer buffer = new StringBuffer("b");
  private final CountDownLatch latch = new CountDownLatch(3);
  private final Semaphore semaphore = new Semaphore(2);
  private final ReadWriteLock readWrite = new ReentrantReadWriteLock();
  private final StampedLock stamped = new StampedLock();
  private final AtomicReference<Box> reference = new AtomicReference<>(new Box("r"));
  private final AtomicLongArray longs = new AtomicLongArray(3);
  private final LongAdder adder = new LongAdder();
  private final MessageDigest digest;
  private final SecureRandom secure = new SecureRandom();
  private final SimpleDateFormat format = new SimpleDateFormat("yyyy", java.util.Locale.ROOT);
  private final Matcher matcher = Pattern.compile("(a+)(b)").matcher("xaab");
  private final WeakReference<Box> weak;
  private final Box[] boxes = {new Box("c"), new Box("a"), new Box("b")};
  private final Square square = new Square(2, List.of(new Circle(1)));
  private final Failing failing = new Failing();
  private final Store store;
  private final Base base;
  private final StringBuilder text = new StringBuilder("abc");
  private final BitSet bits = BitSet.valueOf(new long[] {6});
  private String kept = "";

  /** Collections that are pinned, each of which a root changes. */
  static class Collection4 {
    final Map<String, Integer> synchronizedMap = Collections.synchronizedMap(new TreeMap<>());
    final List<String> synchronizedList = Collections.synchronizedList(new ArrayList<>());
    final Vector<String> vector = new Vector<>();
    final Hashtable<String, Integer> table = new Hashtable<>();
    final Queue<String> queue = new ConcurrentLinkedQueue<>();
    final LinkedBlockingQueue<String> blocking = new LinkedBlockingQueue<>();
    final ConcurrentSkipListMap<String, Box> sorted = new ConcurrentSkipListMap<>();
    final Set<String> keys = ConcurrentHashMap.newKeySet();
    final CopyOnWriteArraySet<String> copied = new CopyOnWriteArraySet<>();
  }

  /** Makes one. */
  public Rows(Store store, Base base) throws Exception {
    this.store = store;
    this.base = base;
    digest = MessageDigest.getInstance("SHA-256");
    weak = new WeakReference<>(boxes[0]);
    boxes[0].next = boxes[1];
    REGISTRY.put("x", boxes[0]);
    properties.setProperty("p", "1");
  }

  public Object lockedAndThrown() {
    String first;
    try {
      failing.fail(store);
      first = "no";
    } catch (IllegalArgumentException e) {
      first = e.getMessage();
    }
    try {
      synchronized (boxes) {
        synchronized (failing) {
          throw new IllegalStateException("in the block");
        }
      }
    } catch (IllegalStateException e) {
      return first + e.getMessage() + store.holds(failing) + store.holds(boxes) + Thread.holdsLock(failing);
    }
  }

  public Object held() {
    synchronized (failing) {
      return Thread.holdsLock(failing) + " " + store.holds(failing) + Thread.holdsLock(boxes);
    }
  }

  public Object collections() {
    int at = collections.vector.size();
    collections.synchronizedMap.merge("k", 1, Integer::sum);
    collections.synchronizedList.add("l" + at);
    collections.vector.add("v" + at);
    collections.table.put("t" + at, at);
    collections.queue.add("q" + at);
    collections.blocking.offer("b" + at);
    collections.sorted.computeIfAbsent("s" + at, Box::new).next = boxes[1];
    collections.keys.add("k" + at);
    collections.copied.add("c");
    StringBuilder all = new StringBuilder();
    for (String one : collections.vector) {
      all.append(one);
    }
    synchronized (collections.synchronizedList) {
      for (String one : collections.synchronizedList) {
        all.append(one);
      }
    }
    collections.sorted.forEach((key, box) -> all.append(key).append(box.next.name));
    collections.table.forEach((key, value) -> all.append(value));
    return all.append(collections.synchronizedMap.get("k")).append(collections.blocking.poll()).append(collections.queue.peek()).toString();
  }

  public Object properties() {
    properties.setProperty("q", properties.getProperty("p") + "2");
    return properties.getProperty("q") + properties.getProperty("none", "else") + properties.size();
  }

  public Object buffer() {
    buffer.append(buffer.length()).insert(0, 'x');
    return buffer.toString() + buffer.indexOf("b");
  }

  public Object latches() throws InterruptedException {
    latch.countDown();
    semaphore.acquire();
    long left = latch.getCount();
    boolean first = semaphore.tryAcquire();
    semaphore.release(first ? 2 : 1);
    return left + ":" + first + semaphore.availablePermits();
  }

  public Object readWrite() {
    readWrite.writeLock().lock();
    try {
      kept += "w";
    } finally {
      readWrite.writeLock().unlock();
    }
    readWrite.readLock().lock();
    try {
      return kept;
    } finally {
      readWrite.readLock().unlock();
    }
  }

  public Object stamped() {
    long stamp = stamped.writeLock();
    try {
      kept += "s";
    } finally {
      stamped.unlockWrite(stamp);
    }
    return kept + stamped.isWriteLocked();
  }

  public Object atomicReferences() {
    Box before = reference.getAndUpdate(box -> boxes[box == boxes[1] ? 2 : 1]);
    longs.addAndGet(1, 7);
    adder.increment();
    return before.name + reference.get().name + longs.get(1) + adder.sum();
  }

  public Object digests() {
    byte[] sum = digest.digest("text".getBytes(StandardCharsets.UTF_8));
    return sum.length + " " + sum[0] + (secure.nextInt(3) < 3);
  }

  public Object builders() {
    String reversed = new StringBuilder(text).reverse().toString();
    text.append(reversed.length());
    List<Object> list = new ArrayList<>(List.of(text));
    store.save("text", text);
    store.change(() -> text.append("!"));
    StringBuilder own = new StringBuilder();
    collections.sorted.put("k", boxes[0]);
    collections.sorted.forEach((key, box) -> own.append(key));
    return "is " + text + list + own + String.join("-", text, own);
  }

  public Object bits() {
    BitSet own = new BitSet();
    own.or(bits);
    bits.set(70);
    return own.toString() + bits;
  }

  public Object formats() {
    return format.format(new Date(0)) + (matcher.find(0) ? matcher.group(1) : "");
  }

  public Object weak() {
    return weak.get() == boxes[0];
  }

  public Object local() {
    java.util.concurrent.atomic.AtomicInteger sum = new java.util.concurrent.atomic.AtomicInteger();
    Map<String, Integer> map = new ConcurrentHashMap<>();
    StringBuilder text = new StringBuilder();
    Arrays.asList(boxes).forEach(box -> {
      sum.addAndGet(box.name.length());
      map.merge(box.name, 1, Integer::sum);
      text.append(box.name);
    });
    WeakReference<Box> own = new WeakReference<>(boxes[1]);
    return sum.get() + new TreeMap<>(map).toString() + text + (own.get() == boxes[1]);
  }

  public Object annotations() {
    Graded graded = Marked.class.getAnnotation(Graded.class);
    return graded.value() + " " + (graded.value() == Level.HIGH) + graded.types()[0].getSimpleName() + Marked.class.getAnnotations().length;
  }

  public Object patterns() {
    Shape shape = square;
    String kind = shape instanceof Square one && one.side() > 1 ? "square " + one.holes().get(0) : "none";
    return kind + square.equals(new Square(2, List.of(new Circle(1)))) + (square.hashCode() == new Square(2, List.of(new Circle(1))).hashCode());
  }

  public Object reflection() throws Exception {
    var field = Box.class.getDeclaredField("next");
    field.setAccessible(true);
    Box next = (Box) field.get(boxes[0]);
    field.set(boxes[2], boxes[0]);
    Object cloned = Box.class.getMethod("clone").invoke(boxes[0]);
    Box made = Box.class.getDeclaredConstructor(String.class).newInstance("made");
    Object array = java.lang.reflect.Array.newInstance(Box.class, 2);
    java.lang.reflect.Array.set(array, 1, made);
    boxes[1].next = made;
    return next.name + ((Box) cloned).next.name + boxes[2].next.name + ((Box[]) array)[1].name + Level.class.getEnumConstants().length
        + Square.class.getRecordComponents()[1].getName();
  }

  public Object copies() {
    Box copy = boxes[0].clone();
    Box[] all = boxes.clone();
    Box[] more = Arrays.copyOf(boxes, 5);
    System.arraycopy(boxes, 0, more, 2, 3);
    Arrays.sort(all, Comparator.comparing((Box box) -> box.name));
    return copy.next.name + all[0].name + more[4].name + (more[2] == boxes[0]) + Arrays.stream(boxes).map(box -> box.name).collect(Collectors.joining());
  }

  public Object standIns() {
    Map<Object, String> map = new HashMap<>();
    map.put(base, "base");
    Set<Object> identities = Collections.newSetFromMap(new java.util.IdentityHashMap<>());
    identities.add(store);
    identities.add(store.same(store));
    Object[] both = {base, store};
    return map.get(base) + base.equals(base) + (base.hashCode() == store.hash(base)) + identities.size() + (both[0] == store.same(base)) + (store instanceof Store)
        + java.lang.reflect.Proxy.isProxyClass(store.getClass()) + base;
  }

  public Object statics() {
    Base.made++;
    Failing.made += Base.made;
    REGISTRY.put("y" + REGISTRY.size(), boxes[1]);
    return Base.made + ":" + Failing.made + (REGISTRY.get("x") == boxes[0]) + new TreeMap<>(REGISTRY).keySet();
  }

  public Object charset() {
    return Charset.defaultCharset() + " " + new String("\u00e4\u20ac".getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8) + "\u00e4".getBytes(Charset.defaultCharset()).length;
  }

  public Object interrupted() throws InterruptedException {
    store.interrupt();
    boolean was = Thread.interrupted();
    store.interrupt();
    String ended = "slept";
    try {
      Thread.sleep(60_000);
    } catch (InterruptedException e) {
      ended = "interrupted";
    }
    store.interrupt();
    try {
      synchronized (boxes) {
        boxes.wait(60_000);
      }
    } catch (InterruptedException e) {
      ended += " twice";
    }
    return was + ended + Thread.interrupted();
  }

  public Object deepRecursion() {
    return depth(boxes[0], 0, "a", 1L);
  }

  private int depth(Box box, int level, String text, long number) {
    return level == 4_000 ? text.length() : depth(box, level + 1, text, number + level) + (box.name == null ? 1 : 0);
  }

  public Object deepObjects() {
    Box first = null;
    for (int i = 0; i < 100_000; i++) {
      Box box = new Box("d");
      box.next = first;
      first = box;
    }
    boxes[1].next = first;
    int length = store.length(first);
    boxes[1].next = null;
    return length;
  }

  public Object callbacks() {
    Function<Object, Object> decorate = store.decorator();
    UnaryOperator<String> upper = String::toUpperCase;
    store.save("b", boxes[0]);
    List<Object> each = store.each(value -> value instanceof Box box ? upper.apply(box.name) + decorate.apply("x") : "none");
    return each + kept;
  }

  public Object causes() {
    try {
      try {
        store.fail("inner");
      } catch (IllegalArgumentException e) {
        IllegalStateException outer = new IllegalStateException("outer", e);
        outer.addSuppressed(new UnsupportedOperationException(boxes[0].name));
        throw outer;
      } finally {
        kept += "f";
      }
    } catch (IllegalStateException e) {
      StackTraceElement[] stack = e.getStackTrace();
      return e.getCause().getMessage() + e.getSuppressed()[0].getMessage() + stack[0].getMethodName() + stack[0].getLineNumber();
    }
    return "none";
  }

  public Object nullPointer() {
    Box none = boxes[1].next;
    boxes[1].next = null;
    try {
      return boxes[1].next.name + none;
    } catch (NullPointerException e) {
      return "null";
    }
  }

  public Object casts() {
    Object box = boxes[0];
    try {
      return ((String) box).length();
    } catch (ClassCastException e) {
      return "cast";
    }
  }

  public Object assertions() {
    Object[] objects = boxes;
    try {
      objects[0] = "text";
    } catch (ArrayStoreException e) {
      return "store";
    }
    return "stored";
  }
}
