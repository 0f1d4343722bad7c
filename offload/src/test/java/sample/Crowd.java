package sample;

import dev.forerun.offload.agent.Entry;
import dev.forerun.offload.agent.Functions;
import dev.forerun.offload.agent.Offloader;
import dev.forerun.offload.graph.Rules;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Two threads of the application and two instances of its function change the same objects at once: no change is lost. */
public final class Crowd {
  private static final String NAME = "sample.app.Shared";
  private static final int CALLS = 25; // of each thread
  private static final int THREADS = 4;

  private Crowd() {}

  /** Calls each root so many times, in an order of its own. Where it offloads is decided by the offloader. */
  private static void work(Object shared, List<Method> roots, int thread, List<Throwable> failed) {
    try {
      for (int i = 0; i < CALLS; i++) {
        for (int at = 0; at < roots.size(); at++) {
          roots.get((at + thread * 3) % roots.size()).invoke(shared);
        }
      }
    } catch (ReflectiveOperationException | RuntimeException e) {
      failed.add(e);
    }
  }

  private static String run() throws Exception {
    Set<String> names = new TreeSet<>();
    for (Method method : Class.forName(NAME).getDeclaredMethods()) {
      if (method.getReturnType() == Object.class && !method.getName().equals("volatiles")) {
        names.add(NAME + "#" + method.getName());
      }
    }
    Set<String> woven = new TreeSet<>(names);
    woven.add(NAME + "#volatiles");
    ThreadLocal<Pair.Here> own = new ThreadLocal<>(); // threads with an instance of the function offload
    Functions functions = () -> own.get().open();
    Object shared = new Pair.Loader(woven).loadClass(NAME).getConstructor().newInstance();
    List<Method> roots = new ArrayList<>();
    for (String name : names) {
      roots.add(shared.getClass().getMethod(name.substring(name.indexOf('#') + 1)));
    }
    List<String> log = Collections.synchronizedList(new ArrayList<>());
    Offloader offloader = new Offloader(functions, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), log::add);
    Entry.use(offloader);
    List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      int number = i;
      threads.add(
          new Thread(
              () -> {
                if (number % 2 == 0) {
                  own.set(new Pair.Here());
                  work(shared, roots, number, failed);
                } else {
                  Entry.here(() -> work(shared, roots, number, failed));
                }
              }));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
    Thread spinning =
        new Thread(
            () -> {
              own.set(new Pair.Here());
              try {
                shared.getClass().getMethod("volatiles").invoke(shared);
              } catch (ReflectiveOperationException e) {
                failed.add(e);
              }
            });
    spinning.start();
    while ((int) field(shared, "seen") == 0) {
      Thread.sleep(1);
    }
    shared.getClass().getMethod("over").invoke(shared);
    spinning.join();
    Entry.use(null);
    if (!failed.isEmpty()) {
      return failed.get(0).getCause() + " " + log;
    }
    Map<?, ?> sums = (Map<?, ?>) shared.getClass().getMethod("sums").invoke(shared);
    StringBuilder wrong = new StringBuilder();
    sums.forEach((name, sum) -> wrong.append(((Number) sum).intValue() == THREADS * CALLS ? "" : " %s is %s".formatted(name, sum)));
    long offloaded = offloader.offloaded();
    return wrong.length() == 0 && offloaded == (long) THREADS / 2 * CALLS * roots.size() + 1
        ? null
        : "of %d each%s; offloaded %d; %s".formatted(THREADS * CALLS, wrong, offloaded, log);
  }

  private static Object field(Object object, String name) throws ReflectiveOperationException {
    var field = object.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(object);
  }

  /** Prints "ok crowd" at the end. */
  public static void main(String[] args) throws Exception {
    String wrong = run();
    System.out.println(wrong == null ? "ok crowd" : "FAILED crowd: " + wrong);
    System.exit(wrong == null ? 0 : 1);
  }
}
