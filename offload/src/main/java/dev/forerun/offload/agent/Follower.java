package dev.forerun.offload.agent;

import dev.forerun.offload.graph.Likeness;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Mode auto. It measures calls of candidates, has those that need much CPU time shadowed, and offloads a root that three shadows answered
 * as the application did. It does so only while as many calls of such roots run here as there are processors.
 *
 * <p>A shadow is a second run of a call, in a function, that changes nothing here. It starts from the objects as they are before the call.
 */
public final class Follower {
  private static final int EQUAL = 3; // shadows that earn trust
  private static final int DIFFERENT = 3; // shadows that lose it
  private static final int MEASURED = 3; // calls
  private static final int WINDOW = 20; // offloaded calls between two looks at what they cost
  private static final double MAX_COST = 0.75; // of the CPU time of a call here
  private static final long MIN_NANOS = 10_000_000; // CPU time of a call
  private static final long MAX_PARKED_NANOS = 60_000_000_000L;
  private static final long MAX_SHADOW_SECONDS = 60;

  private final Offloader offloader;
  private final Set<String> named;
  private final int processors;
  private final Map<String, Root> roots = new ConcurrentHashMap<>();
  private final AtomicInteger running = new AtomicInteger();
  private final AtomicReference<Offloader.Greeted> parked = new AtomicReference<>();
  private final AtomicBoolean isOpening = new AtomicBoolean();
  private final ExecutorService threads =
      Executors.newCachedThreadPool(
          work -> {
            Thread thread = new Thread(work, "forerun-offload-shadow");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * Makes one.
   *
   * @param named roots that are shadowed whatever CPU time they need, as Class#method
   * @param processors as many calls of chosen roots run here before the next is offloaded
   */
  public Follower(Offloader offloader, Set<String> named, int processors) {
    this.offloader = offloader;
    this.named = named;
    this.processors = processors;
  }

  /** What becomes of a root: MEASURED -> SHADOWED -> TRUSTED; from each of them HOME, for ever. */
  public enum State {
    MEASURED, SHADOWED, TRUSTED, HOME
  }

  private static final class Root {
    final String name;
    final AtomicBoolean isShadowing = new AtomicBoolean();
    volatile State state = State.MEASURED;
    int calls;
    double nanos; // own CPU time of a call, the mean of the last ones
    int equal;
    int different;
    int offloaded;
    long nanosOffloaded;
    boolean isSettled; // the first window has the cost of sending classes

    Root(String name) {
      this.name = name;
    }
  }

  /** A call that runs here. */
  final class Run {
    final String root;
    private final Root of; // null: it is not followed
    private final Shadow shadow;
    private final long begun = Offloader.cpu();
    private long within; // CPU time of followed calls in it

    private Run(String root, Root of, Shadow shadow) {
      this.root = root;
      this.of = of;
      this.shadow = shadow;
    }

    /** The call has ended, within another or not. */
    void end(boolean isThrown, Object value, Run outer) {
      long nanos = Offloader.cpu() - begun;
      if (outer != null) {
        outer.within += nanos;
      }
      if (of == null) {
        return;
      }
      running.decrementAndGet();
      if (shadow != null) {
        shadow.expect(isThrown, value);
      }
      measured(of, nanos - within);
    }

    /** Its end was not seen, as the stack was full. */
    void abandon() {
      if (of != null) {
        running.decrementAndGet();
      }
    }
  }

  /** The state of a root, Class#method and descriptor. */
  public State stateOf(String root) {
    return root(root).state;
  }

  private Root root(String name) {
    Root known = roots.get(name);
    return known != null ? known : roots.computeIfAbsent(name, Root::new);
  }

  private void measured(Root root, long nanos) {
    synchronized (root) {
      root.calls++;
      root.nanos += (nanos - root.nanos) / Math.min(root.calls, 10);
      boolean isNamed = named.contains(root.name.substring(0, root.name.indexOf('(')));
      if (root.state == State.MEASURED && (isNamed || root.calls >= MEASURED && root.nanos >= MIN_NANOS)) {
        root.state = State.SHADOWED;
      }
    }
  }

  /** The result of a call that a function answers now; LOCAL: it runs here. */
  Object offload(String name, Object self, Object[] parameters) throws Throwable {
    Root root = root(name);
    if (root.state != State.TRUSTED || running.get() < processors || !offloader.hasIdle() || !offloader.isOn()) {
      return Entry.LOCAL;
    }
    long before = Offloader.cpu();
    Offloader.Greeted greeted = known();
    if (greeted == null) {
      return Entry.LOCAL;
    }
    Object result = offloader.call(greeted, name, self, parameters);
    if (result != Entry.LOCAL) {
      cost(root, Offloader.cpu() - before);
    } else if (offloader.refused().containsKey(name)) {
      root.state = State.HOME;
    }
    return result;
  }

  /** An instance that is warm; null if there is none. A new one waits for the next shadow. */
  private Offloader.Greeted known() {
    try {
      Offloader.Greeted greeted = offloader.greeted();
      if (offloader.knows(greeted)) {
        return greeted;
      }
      park(greeted);
    } catch (IOException | RuntimeException | Refused e) {
      offloader.pause(e);
    }
    return null;
  }

  private void cost(Root root, long nanos) {
    synchronized (root) {
      root.nanosOffloaded += nanos;
      root.offloaded++;
      if (root.offloaded < WINDOW) {
        return;
      }
      boolean isDear = root.isSettled && (double) root.nanosOffloaded / root.offloaded > MAX_COST * root.nanos;
      root.isSettled = true;
      root.offloaded = 0;
      root.nanosOffloaded = 0;
      if (isDear) {
        home(root, "its offloaded calls cost the application more than %.0f%% of their CPU time there".formatted(100 * MAX_COST));
      }
    }
  }

  private void home(Root root, String why) {
    root.state = State.HOME;
    offloader.refuse(root.name, why);
  }

  /** A call begins here. Nothing that goes wrong with its shadow reaches it. */
  Run begin(String name, Object self, Object[] parameters) {
    Root root = root(name);
    boolean isFull = running.incrementAndGet() > processors;
    boolean isCold = parked.get() != null || !offloader.hasIdle();
    boolean isWanted = root.state == State.SHADOWED || root.state == State.TRUSTED && isFull && isCold;
    return new Run(name, root, isWanted && offloader.isOn() ? shadow(root, self, parameters) : null);
  }

  /** A call that is not followed. */
  Run unfollowed(String name) {
    return new Run(name, null, null);
  }

  private Shadow shadow(Root root, Object self, Object[] parameters) {
    if (!root.isShadowing.compareAndSet(false, true)) {
      return null;
    }
    Shadow shadow = null;
    try {
      Offloader.Greeted greeted = parked.getAndSet(null);
      if (greeted == null || System.nanoTime() - greeted.since() > MAX_PARKED_NANOS) {
        threads.execute(() -> open(greeted));
        return null;
      }
      shadow = new Shadow(root, greeted, self, parameters);
      threads.execute(shadow);
      return shadow;
    } catch (IOException | RuntimeException | Refused | LinkageError | StackOverflowError e) {
      failed(root, e);
      shadow = null;
      return null;
    } finally {
      if (shadow == null) {
        root.isShadowing.set(false);
      }
    }
  }

  /** Has a function begin that waits for the next shadow. */
  private void open(Offloader.Greeted old) {
    try {
      if (old != null) {
        old.link().close();
      }
      if (isOpening.compareAndSet(false, true)) {
        try {
          park(parked.get() == null ? offloader.greeted() : null);
        } finally {
          isOpening.set(false);
        }
      }
    } catch (IOException | RuntimeException | Refused e) {
      offloader.pause(e);
    }
  }

  private void park(Offloader.Greeted greeted) throws IOException {
    if (greeted != null && !parked.compareAndSet(null, greeted)) {
      greeted.link().close();
    }
  }

  private void failed(Root root, Throwable e) {
    if (e instanceof Refused) {
      home(root, "a shadow ended: " + e.getMessage());
    }
  }

  private void compared(Root root, boolean isEqual) {
    synchronized (root) {
      root.equal += isEqual ? 1 : 0;
      root.different += isEqual ? 0 : 1;
      if (root.state == State.SHADOWED && root.equal >= EQUAL) {
        root.state = State.TRUSTED;
      }
      if (root.different >= DIFFERENT) {
        home(root, "%d shadows had other results than the application".formatted(root.different));
      }
    }
  }

  /** The second run of a call. */
  private final class Shadow implements Runnable {
    private final Root root;
    private final Offloader.Greeted greeted;
    private final Object self;
    private final Session session;
    private final Surrogate surrogate;
    private final Out start;
    private final CompletableFuture<String> expected = new CompletableFuture<>();

    Shadow(Root root, Offloader.Greeted greeted, Object self, Object[] parameters) throws IOException {
      this.root = root;
      this.greeted = greeted;
      this.self = self;
      boolean isPacked = false;
      try {
        session = offloader.session(greeted, self);
        surrogate = offloader.surrogate(greeted, session, root.name, true);
        start = surrogate.start(self, parameters);
        isPacked = true;
      } finally {
        if (!isPacked) {
          greeted.link().close();
        }
      }
    }

    /** The call's own end, while nothing has changed its result. */
    void expect(boolean isThrown, Object value) {
      try {
        expected.complete(isThrown + Likeness.of(value, offloader.rules()));
      } catch (RuntimeException | Refused | StackOverflowError e) {
        expected.completeExceptionally(e);
      }
    }

    @Override
    public void run() {
      try (Link link = greeted.link()) {
        link.end(System.nanoTime() + TimeUnit.SECONDS.toNanos(MAX_SHADOW_SECONDS));
        Surrogate.Result result = surrogate.run(start);
        String got = result.isThrown() + Likeness.of(result.value(), offloader.rules());
        String wanted = expected.get(MAX_SHADOW_SECONDS, TimeUnit.SECONDS);
        offloader.keep(greeted, session, self);
        compared(root, got.equals(wanted));
      } catch (ExecutionException e) {
        failed(root, e.getCause());
      } catch (IOException | RuntimeException | Refused | LinkageError | StackOverflowError | TimeoutException e) {
        failed(root, e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        root.isShadowing.set(false);
      }
    }
  }
}
