package dev.forerun.offload.agent;

import dev.forerun.offload.wire.Json;
import java.io.IOException;
import java.util.UUID;

/** Tells Forerun how the roots fare, and takes from its answer whether to go on offloading. */
final class Reporter implements Runnable {
  private static final long PAUSE_MILLIS = 1000;
  private static final int QUIET_ROUNDS = 10; // without news, one of so many is told

  private final Gateway gateway;
  private final Offloader offloader;
  private final String path;

  Reporter(Gateway gateway, Offloader offloader, String name) {
    this.gateway = gateway;
    this.offloader = offloader;
    this.path = "/offload/applications/%s/processes/%s".formatted(name, UUID.randomUUID());
  }

  /** Begins a thread of its own. */
  void start() {
    Thread thread = new Thread(this, "forerun-offload-reporter");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void run() {
    String told = "";
    int quiet = 0;
    try {
      while (true) {
        String report = offloader.report(new Json()).toString();
        quiet++;
        if (!report.equals(told) || quiet >= QUIET_ROUNDS) {
          tell(report);
          told = report;
          quiet = 0;
        }
        Thread.sleep(PAUSE_MILLIS);
      }
    } catch (InterruptedException e) {
      // the application ends it
    }
  }

  private void tell(String report) {
    try {
      offloader.pause(gateway.put(path, report).contains("\"mode\":\"off\""));
    } catch (IOException | RuntimeException e) {
      // Forerun is not to be had; the next round tries again
    }
  }
}
