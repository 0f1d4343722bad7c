package dev.forerun.offload.agent;

import java.util.ArrayDeque;

/** What roots call on the server: first, and in mode auto at their end, too. */
public final class Entry {
  /** The answer that has a root run here. */
  public static final Object LOCAL = new Object();

  private static final ThreadLocal<Boolean> INSIDE = new ThreadLocal<>();
  private static final ThreadLocal<ArrayDeque<Follower.Run>> RUNS = ThreadLocal.withInitial(ArrayDeque::new);
  private static volatile Offloader offloader;
  private static volatile Follower follower;

  private Entry() {}

  /** Has roots ask an offloader; null: they run here. */
  public static void use(Offloader one) {
    offloader = one;
  }

  /** Has roots that are followed ask a follower, for ever. */
  public static void follow(Follower one) {
    follower = one;
  }

  /** Does something with all its roots run here. */
  public static void here(Runnable work) {
    Boolean before = INSIDE.get();
    INSIDE.set(true);
    try {
      work.run();
    } finally {
      INSIDE.set(before);
    }
  }

  /** Calls a root in a function, and returns its result or throws its exception; or LOCAL. A root within an offloaded call runs here. */
  public static Object call(String root, Object self, Object[] parameters) throws Throwable {
    Offloader one = offloader;
    if (one == null || INSIDE.get() != null) {
      return LOCAL;
    }
    INSIDE.set(true);
    try {
      return one.call(root, self, parameters);
    } finally {
      INSIDE.remove();
    }
  }

  /** The same for a root whose end is told by returned or thrown if it runs here. */
  public static Object follow(String root, Object self, Object[] parameters) throws Throwable {
    Follower one = follower;
    if (one == null) {
      return LOCAL;
    }
    Follower.Run run = one.unfollowed(root);
    if (INSIDE.get() == null) {
      INSIDE.set(true);
      try {
        Object result = one.offload(root, self, parameters);
        if (result != LOCAL) {
          return result;
        }
        run = one.begin(root, self, parameters);
      } finally {
        INSIDE.remove();
      }
    }
    RUNS.get().push(run);
    return LOCAL;
  }

  /** A root that ran here returned. */
  public static void returned(Object result, String root) {
    left(root, false, result);
  }

  /** A root that ran here threw an exception. */
  public static void thrown(Object thrown, String root) {
    left(root, true, thrown);
  }

  private static void left(String root, boolean isThrown, Object value) {
    ArrayDeque<Follower.Run> runs = RUNS.get();
    while (!runs.isEmpty()) {
      Follower.Run run = runs.pop();
      if (run.root.equals(root)) {
        run.end(isThrown, value, runs.peek());
        return;
      }
      run.abandon();
    }
  }
}
