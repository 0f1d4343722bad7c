package dev.forerun.offload.agent;

/** What roots call first on the server. */
public final class Entry {
  /** The answer that has a root run here. */
  public static final Object LOCAL = new Object();

  private static final ThreadLocal<Boolean> INSIDE = new ThreadLocal<>();
  private static volatile Offloader offloader;

  private Entry() {}

  /** Has roots ask an offloader; null: they run here. */
  public static void use(Offloader one) {
    offloader = one;
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
}
