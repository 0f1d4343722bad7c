package sample.app;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import sample.library.Base;
import sample.library.Store;

/** Roots that have to be answered by a function, with the result and the state that they have here. */
public class Shop {
  /** A kind of goods. */
  enum Sort {
    BOOK("b") {
      @Override
      int tax() {
        return 7;
      }
    },
    TOOL("t");

    private final String letter;
    private int sold;

    Sort(String letter) {
      this.letter = letter;
    }

    int tax() {
      return 19;
    }
  }

  record Price(BigDecimal amount, String currency) {}

  /** Goods. */
  static class Item implements Comparable<Item> {
    final String name;
    final Sort sort;
    Price price;
    Item next;
    int count;
    volatile int seen;

    Item(String name, Sort sort, Price price) {
      this.name = name;
      this.sort = sort;
      this.price = price;
    }

    @Override
    public int compareTo(Item other) {
      return name.compareTo(other.name);
    }

    @Override
    public String toString() {
      return name + ":" + sort + ":" + price + ":" + count;
    }
  }

  static final class Gone extends Exception {
    private static final long serialVersionUID = 1;
    final Item item;

    Gone(Item item, Throwable cause) {
      super("gone " + item.name, cause);
      this.item = item;
    }
  }

  interface Keys {
    List<String> ALL = new ArrayList<>(List.of("x", "y"));
  }

  /** A collection with a field, and a method of its own. */
  static class Model extends LinkedHashMap<String, Object> {
    private static final long serialVersionUID = 1;
    Item first;
    int changes;

    @Override
    public Object put(String name, Object value) {
      changes++;
      return super.put(name, value);
    }
  }

  /** One that keeps the last three. */
  static class Last extends java.util.LinkedHashMap<Integer, String> {
    private static final long serialVersionUID = 1;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, String> eldest) {
      return size() > 3;
    }

    @Override
    public int size() {
      return super.size();
    }
  }

  static int served;
  static final Map<String, Integer> COUNTS = new HashMap<>();
  static final Pattern WORD = Pattern.compile("[a-z]+", Pattern.CASE_INSENSITIVE);
  static final AtomicLong TOTAL = new AtomicLong();
  private static final ThreadLocal<String> USER = ThreadLocal.withInitial(() -> "user");

  private final List<Item> items = new ArrayList<>();
  private final Map<String, Item> byName = new TreeMap<>(Comparator.reverseOrder());
  private final Map<Sort, List<Item>> bySort = new EnumMap<>(Sort.class);
  private final Set<Item> identities = new HashSet<>();
  private final AtomicInteger sales = new AtomicInteger();
  private final ConcurrentHashMap<String, Integer> hits = new ConcurrentHashMap<>();
  private final CopyOnWriteArrayList<String> listeners = new CopyOnWriteArrayList<>();
  private final ReentrantLock lock = new ReentrantLock();
  private final StringBuilder text = new StringBuilder("start");
  private final Random random = new Random(7);
  private final Store store;
  private final Base base;
  private final Function<Item, String> namer;
  private final Object[] mixed;
  private final int[] numbers = IntStream.range(0, 100).toArray();
  private final long[][] grid = new long[3][4];
  private final LinkedList<String> log = new LinkedList<>();
  private final ArrayDeque<Integer> queue = new ArrayDeque<>();
  private final Supplier<Integer> later;
  private final Date date = new Date(1000);
  private final Model model = new Model();
  private final Last last = new Last();
  private String memo;

  /** Makes a shop. */
  public Shop(Store store, Base base) {
    this.store = store;
    this.base = base;
    for (Sort sort : Sort.values()) {
      for (int i = 0; i < 3; i++) {
        Item item = new Item(sort.letter + i, sort, new Price(new BigDecimal("1." + i), "EUR"));
        items.add(item);
        byName.put(item.name, item);
        bySort.computeIfAbsent(sort, one -> new ArrayList<>()).add(item);
        identities.add(item);
      }
    }
    items.get(0).next = items.get(1);
    items.get(1).next = items.get(0);
    String suffix = "!";
    namer = item -> item.name + suffix;
    later = () -> sales.get();
    mixed = new Object[] {1, "a", items.get(0), null, 2.5, 'c', items};
  }

  public Object plain() {
    served++;
    memo = "served " + served;
    return memo + items;
  }

  public Object parameters(int a, long b, double c, boolean d, char e, String f, int[] g, List<Object> h) {
    g[1] = 77;
    h.add(items.get(2));
    return a + b + c + (d ? 1 : 0) + e + f;
  }

  public Object lists() {
    items.sort(Comparator.comparing((Item item) -> item.price.amount()).thenComparing(Comparator.naturalOrder()));
    log.addFirst("lists");
    queue.push(items.size());
    queue.addLast(3);
    List<Item> copy = new ArrayList<>(items);
    Collections.reverse(copy);
    return List.of(copy, Arrays.asList(mixed), List.copyOf(log), new ArrayList<>(queue));
  }

  public Object maps() {
    byName.put("new", new Item("new", Sort.BOOK, null));
    COUNTS.merge("maps", 1, Integer::sum);
    Map<Object, Object> result = new LinkedHashMap<>();
    result.put(byName.get("b1"), new TreeSet<>(byName.keySet()));
    result.put(2, bySort.get(Sort.TOOL));
    Map<Sort, Integer> sorts = new HashMap<>();
    sorts.put(Sort.TOOL, 1);
    sorts.put(Sort.BOOK, 2);
    return List.of(new ArrayList<>(result.values()), sorts.get(Sort.TOOL), sorts.get(Sort.BOOK), COUNTS);
  }

  public Object identity() {
    boolean all = true;
    for (Item item : items) {
      all &= identities.contains(item) && byName.get(item.name) == item;
    }
    Map<Object, Integer> where = new IdentityHashMap<>();
    items.forEach(item -> where.put(item, item.count));
    return List.of(all, items.get(0).next.next == items.get(0), where.size(), where.containsKey(items.get(3)));
  }

  public Object hashes() {
    return System.identityHashCode(items.get(0)) == store.identity(items.get(0)) && items.get(1).hashCode() == store.hash(items.get(1))
        && System.identityHashCode(store) == store.identity(store) && System.identityHashCode(memo) == store.identity(memo);
  }

  public Object enums() {
    Sort.BOOK.sold++;
    EnumSet<Sort> set = EnumSet.of(Sort.TOOL);
    set.add(Sort.valueOf("BOOK"));
    String text = switch (items.get(0).sort) {
      case BOOK -> "book";
      case TOOL -> "tool";
    };
    return List.of(set, text, Sort.BOOK.sold, Sort.BOOK.tax(), Sort.BOOK == store.same(Sort.BOOK), Sort.BOOK.getDeclaringClass() == Sort.class);
  }

  public Object streams() {
    return Stream.of(items.toArray(new Item[0]))
        .filter(item -> item.sort == Sort.TOOL)
        .collect(Collectors.groupingBy(namer, TreeMap::new, Collectors.summingInt(item -> item.price.amount().intValue())));
  }

  public Object arrays() {
    Item[] array = items.toArray(new Item[0]);
    Arrays.sort(array, Comparator.reverseOrder());
    System.arraycopy(numbers, 0, numbers, 50, 50);
    numbers[3] = -3;
    grid[2][1] = 21;
    mixed[3] = "set";
    Item[] copy = array.clone();
    return List.of(Arrays.asList(copy), Arrays.stream(numbers).sum(), Arrays.deepToString(grid));
  }

  public Object values() {
    date.setTime(date.getTime() + 1);
    return List.of(
        new BigInteger("12345678901234567890").multiply(BigInteger.TWO), LocalDate.of(2026, 1, 2).plusDays(3), Duration.ofMillis(5),
        UUID.nameUUIDFromBytes(new byte[] {1, 2}), Optional.of(items.get(0)), Optional.empty(), Locale.ROOT, ZoneId.of("Europe/Paris"),
        WORD.matcher("Abc").matches(), date, Collections.emptyList() == store.same(Collections.emptyList()), Float.NaN, (byte) -3, (short) 9);
  }

  public Object strings() {
    String lone = "a\ud800b\u00ff\u20ac";
    return List.of(lone.equals(store.same(lone)), lone, store.same("same") == "same", "x" + items.get(0) + 1L + 'c' + null);
  }

  public Object pinned() {
    store.save("k", items.get(0));
    Item back = (Item) store.load("k");
    return List.of(back == items.get(0), store.names(), store.each(item -> item.toString().toUpperCase(Locale.ROOT)));
  }

  public Object changedMeanwhile() {
    items.get(0).count = 5;
    store.change(() -> items.get(0).count *= 2);
    store.raise(items.get(1));
    return List.of(items.get(0).count, items.get(1).count);
  }

  public Object atomics() {
    sales.incrementAndGet();
    TOTAL.addAndGet(5);
    hits.merge("a", 1, Integer::sum);
    listeners.add("l" + hits.get("a"));
    return List.of(sales.get(), TOTAL.get(), new ArrayList<>(hits.values()), new ArrayList<>(listeners), later.get());
  }

  public Object finalClass() {
    text.append("+").append(1);
    return text.length() + text.toString();
  }

  public Object randoms() {
    return random.nextInt() + ":" + random.nextLong();
  }

  public Object locks() {
    lock.lock();
    try {
      return lock.isHeldByCurrentThread() + ":" + lock.getHoldCount();
    } finally {
      lock.unlock();
    }
  }

  public Object threadLocals() {
    String before = USER.get();
    USER.set("changed");
    return before + USER.get();
  }

  public synchronized Object monitors() throws InterruptedException {
    synchronized (items.get(0)) {
      synchronized (items.get(0)) {
        items.get(0).count++;
      }
      boolean held = store.holds(items.get(0)) && store.holds(this);
      items.get(0).wait(1);
      items.get(0).notifyAll();
      return held + ":" + locked(3) + ":" + items.get(0).count;
    }
  }

  private static synchronized int locked(int value) {
    return value + 1;
  }

  public Object volatiles() {
    items.get(0).seen++;
    store.touch();
    return items.get(0).seen;
  }

  public Object thrown() throws Gone {
    try {
      items.get(77);
    } catch (IndexOutOfBoundsException e) {
      Gone gone = new Gone(items.get(0), e);
      gone.addSuppressed(new IllegalStateException("too"));
      throw gone;
    }
    return null;
  }

  public Object caught() {
    try {
      store.fail("no");
    } catch (IllegalArgumentException e) {
      return e.getMessage() + e.getStackTrace()[0].getMethodName();
    }
    return null;
  }

  public Object overflow() {
    try {
      return deep(0);
    } catch (StackOverflowError e) {
      return "overflow";
    }
  }

  private int deep(int level) {
    return 1 + deep(level + 1);
  }

  public Object chain() {
    Item first = null;
    for (int i = 0; i < 5_000; i++) {
      Item item = new Item("i", Sort.TOOL, null);
      item.next = first;
      first = item;
    }
    return store.length(first);
  }

  public Object classes() throws Exception {
    return List.of(
        store.getClass() == store.same(store.getClass()), base.getClass().getSimpleName(), store instanceof Store,
        items.get(0).getClass() == Item.class, Class.forName("sample.app.Shop$Item") == Item.class,
        Item.class.getDeclaredField("count").getInt(items.get(0)), java.lang.reflect.Proxy.isProxyClass(store.getClass()));
  }

  public Object fields() {
    base.count += 3;
    base.wide *= 2;
    base.name = base.name + "'";
    return List.of(base.count, base.wide, base.name, base.tell());
  }

  public Object interfaces() {
    Keys.ALL.add("z" + Keys.ALL.size());
    return new ArrayList<>(Keys.ALL);
  }

  public Object process() {
    return List.of(
        System.getProperty("sample.only", "none"), TimeZone.getDefault().getID(), Locale.getDefault().toString(),
        System.getenv("PATH").equals(store.environment("PATH")));
  }

  public Object made() {
    Base fresh = new Base("fresh");
    fresh.count = 4;
    store.save("base", fresh);
    fresh.count = 5;
    return List.of(store.load("base") == fresh, fresh.tell());
  }

  public Object views() {
    return List.of(new ArrayList<>(store.immutable()), store.immutable().contains("b"), new ArrayList<>(store.view().values()), store.view().get("a"));
  }

  public Object derived() {
    model.put("k" + model.size(), items.get(model.size()));
    model.first = items.get(1);
    last.put(last.hashCode(), "a");
    last.put(served, "b");
    Model made = new Model();
    made.put("inner", model);
    made.put("words", new ArrayList<String>(List.of("a")) {
      private static final long serialVersionUID = 1;
    });
    return List.of(made, model.changes, last.values().toString());
  }

  public Object large() {
    return "large".repeat(1 << 20);
  }

  public Object lambdas() {
    Supplier<String> captured = () -> memo + items.size();
    store.keep(captured);
    memo = "later";
    return store.kept() + namer.apply(items.get(0));
  }
}
