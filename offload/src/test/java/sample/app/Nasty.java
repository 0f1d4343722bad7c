package sample.app;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/** Roots that are not supported: each has to run on the server, and to name the reason. */
public class Nasty {
  private static final AtomicIntegerFieldUpdater<Nasty> UPDATER = AtomicIntegerFieldUpdater.newUpdater(Nasty.class, "updated");

  private final StringBuffer text = new StringBuffer("abc");
  private final AtomicInteger counter = new AtomicInteger(3);
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

  public Object referenceToClass() {
    java.util.function.Function<Object, Object> naming = Object::getClass;
    return naming.apply(text).toString();
  }

  public Object handles() throws ReflectiveOperationException {
    return java.lang.invoke.MethodHandles.lookup().findVarHandle(Nasty.class, "updated", int.class).getAndAdd(this, 1);
  }

  public Object sleeping() throws InterruptedException {
    java.util.concurrent.TimeUnit.MILLISECONDS.sleep(1);
    return "slept";
  }

  /** An object of a class that another loader has, too. */
  static final class Foreign {
    static final Object SMALL = make();

    private static Object make() {
      ClassLoader other =
          new ClassLoader(Nasty.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
              if (!name.equals("sample.app.Small")) {
                return super.loadClass(name, resolve);
              }
              try (var in = getResourceAsStream("sample/app/Small.class")) {
                byte[] file = in.readAllBytes();
                return defineClass(name, file, 0, file.length);
              } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
              }
            }
          };
      try {
        return other.loadClass("sample.app.Small").getConstructor().newInstance();
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  public Object twoLoaders() {
    return Foreign.SMALL instanceof Small;
  }

  public Object outOfMemory() {
    throw new OutOfMemoryError("as if");
  }

  public Object largeResult() {
    return new byte[17 << 20].length + new String(new char[17 << 20]);
  }

  public Object hashMapOfMade() {
    HashMap<String, Object> map = new HashMap<>();
    map.put("b", counter);
    return map.toString();
  }
}
