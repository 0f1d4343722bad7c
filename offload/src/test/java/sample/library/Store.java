package sample.library;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;

/** A library's bean, that stays on the server. */
public interface Store {
  void save(String key, Object value);

  Object load(String key);

  Collection<String> names();

  Object same(Object value);

  int identity(Object value);

  int hash(Object value);

  List<Object> each(Function<Object, Object> change);

  void change(Runnable work);

  void raise(Object item);

  boolean holds(Object monitor);

  void touch();

  void fail(String why);

  int length(Object first);

  String environment(String name);

  Set<String> immutable();

  Map<String, Integer> view();

  void keep(Supplier<String> one);

  String kept();

  void interrupt();

  Function<Object, Object> decorator();

  /** The implementation, behind a proxy. */
  static Store make(ClassLoader loader) {
    Kept kept = new Kept();
    return (Store)
        java.lang.reflect.Proxy.newProxyInstance(
            loader,
            new Class<?>[] {Store.class},
            (proxy, method, parameters) -> {
              try {
                return method.invoke(kept, parameters);
              } catch (java.lang.reflect.InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** The object behind the proxy. */
  final class Kept implements Store {
    private final Map<String, Object> values = new TreeMap<>();
    private Supplier<String> supplier;

    @Override
    public void save(String key, Object value) {
      values.put(key, value);
    }

    @Override
    public Object load(String key) {
      return values.get(key);
    }

    @Override
    public Collection<String> names() {
      return Collections.unmodifiableCollection(new ArrayList<>(values.keySet()));
    }

    @Override
    public Object same(Object value) {
      return value;
    }

    @Override
    public int identity(Object value) {
      return System.identityHashCode(value);
    }

    @Override
    public int hash(Object value) {
      return value.hashCode();
    }

    @Override
    public List<Object> each(Function<Object, Object> change) {
      List<Object> changed = new ArrayList<>();
      values.values().forEach(value -> changed.add(change.apply(value)));
      return changed;
    }

    @Override
    public void change(Runnable work) {
      work.run();
    }

    @Override
    public void raise(Object item) {
      try {
        var field = item.getClass().getDeclaredField("count");
        field.setAccessible(true);
        field.setInt(item, field.getInt(item) + 10);
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public boolean holds(Object monitor) {
      return Thread.holdsLock(monitor);
    }

    @Override
    public void touch() {}

    @Override
    public void fail(String why) {
      throw new IllegalArgumentException(why);
    }

    @Override
    public int length(Object first) {
      int length = 0;
      try {
        var field = first.getClass().getDeclaredField("next");
        field.setAccessible(true);
        for (Object at = first; at != null; at = field.get(at)) {
          length++;
        }
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
      return length;
    }

    @Override
    public String environment(String name) {
      return System.getenv(name);
    }

    @Override
    public Set<String> immutable() {
      return Set.of("a", "b", "c");
    }

    @Override
    public Map<String, Integer> view() {
      return Collections.synchronizedMap(new TreeMap<>(Map.of("a", 1, "b", 2)));
    }

    @Override
    public void keep(Supplier<String> one) {
      supplier = one;
    }

    @Override
    public void interrupt() {
      Thread.currentThread().interrupt();
    }

    @Override
    public Function<Object, Object> decorator() {
      return value -> "<" + value + ">";
    }

    @Override
    public String kept() {
      return supplier.get();
    }
  }
}
