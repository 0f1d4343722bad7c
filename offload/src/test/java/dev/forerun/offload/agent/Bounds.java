package dev.forerun.offload.agent;

import dev.forerun.offload.wire.Upgrade;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Calls to a gateway that accepts and says nothing. It prints "ok NAME" or "FAILED NAME: why" for each. */
public final class Bounds {
  private Bounds() {}

  private static <T> FutureTask<T> begin(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread thread = new Thread(task, "call");
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  /** What a call fails with, as text; null: it did not fail within a minute. */
  private static String failure(Callable<?> call) throws Exception {
    try {
      return "no failure: " + begin(call).get(1, TimeUnit.MINUTES);
    } catch (java.util.concurrent.ExecutionException e) {
      return e.getCause() instanceof IOException ? e.getCause().toString() : "no IOException: " + e.getCause();
    } catch (TimeoutException e) {
      return "it waits";
    }
  }

  private static boolean check(String name, String got, String want) {
    boolean ok = got.contains(want);
    System.out.println(ok ? "ok " + name : "FAILED " + name + ": " + got);
    return ok;
  }

  /** Runs all. */
  public static void main(String[] args) throws Exception {
    boolean ok;
    try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
      String address = "127.0.0.1:" + silent.getLocalPort();
      ok = check("handshake", failure(() -> Upgrade.open(URI.create("https://" + address), "a:b", "/", 200, 0)), "SocketTimeoutException");
      silent.accept().close();
      Path jar = Files.createTempFile("bounds", ".jar");
      Gateway gateway = new Gateway(URI.create("http://" + address), "a:b", jar, 1000);
      begin(gateway::open);
      try (Socket deploying = silent.accept()) {
        deploying.getInputStream().read();
        ok &= check("deploying", failure(gateway::open), "is being deployed");
      }
      Files.delete(jar);
    }
    System.exit(ok ? 0 : 1);
  }
}
