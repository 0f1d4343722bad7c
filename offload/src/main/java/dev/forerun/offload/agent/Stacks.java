package dev.forerun.offload.agent;

import java.util.Arrays;

/** Stacks of exceptions that were thrown in a function. */
final class Stacks {
  private Stacks() {}

  /** Puts the frames of this thread, below the runtime's, under those of an exception. */
  static void join(Throwable thrown) {
    StackTraceElement[] here = new Throwable().getStackTrace();
    int from = 0;
    while (from < here.length && here[from].getClassName().startsWith("dev.forerun.offload.agent.")) {
      from++;
    }
    StackTraceElement[] there = thrown.getStackTrace();
    StackTraceElement[] joined = Arrays.copyOf(there, there.length + Math.max(0, here.length - from - 1));
    for (int i = there.length; i < joined.length; i++) {
      joined[i] = here[from + 1 + i - there.length]; // the root's own frame is among those of the function
    }
    thrown.setStackTrace(joined);
  }
}
