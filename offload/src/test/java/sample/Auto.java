package sample;

import dev.forerun.offload.agent.Entry;
import dev.forerun.offload.agent.Follower;
import dev.forerun.offload.agent.Offloader;
import dev.forerun.offload.graph.Rules;
import java.lang.reflect.InvocationTargetException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Mode auto: roots are found by their annotation. A shadow changes nothing; three with the same results earn trust. A trusted root runs
 * in the function while another call runs here, and here as soon as that is over.
 */
public final class Auto {
  private static final String NAME = "sample.app.Busy";
  private static final String ANSWER = "(IJ)Lsample/app/Busy$Answer;";
  private static final long LIMIT_NANOS = 120_000_000_000L;

  private final Object log;
  private final Object busy;
  private final Map<String, Integer> saves = new HashMap<>();
  private final Offloader offloader;
  private final Follower follower;
  private int calls;

  private Auto() throws ReflectiveOperationException {
    ClassLoader loader = new Pair.Loader(Set.of(), true);
    log = loader.loadClass("sample.library.Log").getConstructor().newInstance();
    Class<?> store = loader.loadClass("sample.library.Store");
    Object counting =
        java.lang.reflect.Proxy.newProxyInstance(
            loader, new Class<?>[] {store}, (proxy, method, parameters) -> method.getReturnType() == void.class && saves.merge("save", 1, Integer::sum) < 0 ? 1 : null);
    busy = loader.loadClass(NAME).getConstructors()[0].newInstance(log, counting);
    offloader = new Offloader(new Pair.Here(), Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), line -> {});
    Set<String> named = Set.of(NAME + "#pure", NAME + "#time", NAME + "#effect", NAME + "#failing", NAME + "#held");
    follower = new Follower(offloader, named, 1);
    Entry.follow(follower);
  }

  private String call(String method, Class<?>[] types, Object... parameters) throws ReflectiveOperationException {
    try {
      return String.valueOf(busy.getClass().getMethod(method, types).invoke(busy, parameters));
    } catch (InvocationTargetException e) {
      return e.getCause().toString();
    }
  }

  private String pure() throws ReflectiveOperationException {
    calls++;
    return call("pure", new Class<?>[] {int.class, long.class}, 7, 1L << 40);
  }

  /** Calls a root until it has a state. */
  private void until(String method, String descriptor, Follower.State state) throws Exception {
    long end = System.nanoTime() + LIMIT_NANOS;
    while (follower.stateOf(NAME + "#" + method + descriptor) != state && System.nanoTime() < end) {
      if (method.equals("pure")) {
        pure();
      } else {
        call(method, new Class<?>[0]);
      }
      Thread.sleep(1);
    }
    check(follower.stateOf(NAME + "#" + method + descriptor) == state, method + " does not become " + state + ": " + offloader.refused());
  }

  private static void check(boolean isRight, String wrong) {
    if (!isRight) {
      System.out.println("FAILED auto: " + wrong);
      System.exit(1);
    }
  }

  /** Each effect of each call is there once. */
  private void checkEffects() throws ReflectiveOperationException {
    String expected = "%d %d %d %d".formatted(calls, calls, calls, calls + 3);
    int lines = ((List<?>) log.getClass().getField("lines").get(log)).size();
    check(busy.toString().equals(expected), "after %d calls it has %s".formatted(calls, busy));
    check(saves.getOrDefault("save", 0) == calls && lines == calls, "after %d calls %s and %d lines".formatted(calls, saves, lines));
  }

  private void run() throws Exception {
    String first = pure();
    until("pure", ANSWER, Follower.State.TRUSTED);
    checkEffects();
    check(pure().equals(first) && offloader.offloaded() == 0, "a call is offloaded while there is room here");
    Thread holding =
        new Thread(
            () -> {
              try {
                call("held", new Class<?>[0]);
              } catch (ReflectiveOperationException e) {
                check(false, e.toString());
              }
            });
    holding.start();
    while (holding.getState() != Thread.State.WAITING) {
      Thread.sleep(1);
    }
    long end = System.nanoTime() + LIMIT_NANOS;
    while (offloader.offloaded() < 2 && System.nanoTime() < end) {
      check(pure().equals(first), "a result differs");
    }
    check(offloader.offloaded() >= 2, "no call is offloaded while another one runs: " + offloader.refused());
    call("later", new Class<?>[0]);
    holding.join();
    long before = offloader.offloaded();
    check(pure().equals(first) && offloader.offloaded() == before, "a call is offloaded after the burst");
    checkEffects();
    until("time", "()J", Follower.State.HOME);
    until("effect", "()Ljava/lang/Object;", Follower.State.HOME);
    until("failing", "()Ljava/lang/Object;", Follower.State.TRUSTED);
    check(call("failing", new Class<?>[0]).equals("java.lang.IllegalStateException: failed"), "an exception differs");
    for (int i = 0; i < 3; i++) {
      call("heavy", new Class<?>[] {int.class}, i);
    }
    check(follower.stateOf(NAME + "#heavy(I)I") != Follower.State.MEASURED, "heavy is not chosen");
    check(follower.stateOf(NAME + "#later()Ljava/util/concurrent/CompletableFuture;") == Follower.State.MEASURED, "later is followed");
  }

  /** Prints "ok auto" at the end. */
  public static void main(String[] args) throws Exception {
    new Auto().run();
    System.out.println("ok auto");
    System.exit(0);
  }
}
