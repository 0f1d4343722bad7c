package dev.forerun.offload.agent;

import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Upgrade;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.HexFormat;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** Forerun: the agent's own jar is deployed there as an action, once, and each call is an activation of it. */
final class Gateway implements Functions {
  private static final int MEETING_MILLIS = 65_000;
  private static final int CONNECT_MILLIS = 2000;
  private static final int PUT_MILLIS = 60_000;

  private final URI server;
  private final String key;
  private final Path jar;
  private final int silence;
  private final Lock deploying = new ReentrantLock();
  private volatile String action;

  Gateway(URI server, String key, Path jar, int silence) {
    this.server = server;
    this.key = key;
    this.jar = jar;
    this.silence = silence;
  }

  @Override
  public Link open() throws IOException {
    return Upgrade.open(server, key, "/offload/call?action=" + deployed(), MEETING_MILLIS, silence);
  }

  /** Deploys the action at the first call. Calls of other threads do not wait for that, and run here. */
  private String deployed() throws IOException {
    if (action != null) {
      return action;
    }
    if (!deploying.tryLock()) {
      throw new IOException("the agent's action is being deployed");
    }
    try {
      if (action == null) {
        byte[] code = Files.readAllBytes(jar);
        String name = "forerun-offload-" + digest(code);
        deploy(name, code);
        action = name;
      }
      return action;
    } finally {
      deploying.unlock();
    }
  }

  /** Names the jar and the application, so that two applications do not share instances. */
  private static String digest(byte[] code) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(code);
      digest.update((System.getProperty("sun.java.command", "").split(" ")[0] + " " + System.getProperty("user.dir")).getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest.digest(), 0, 6);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private void deploy(String name, byte[] code) throws IOException {
    String body =
        "{\"exec\":{\"kind\":\"java:%d\",\"main\":\"dev.forerun.offload.function.Main\",\"code\":\"%s\"},\"limits\":{\"timeout\":300000,\"memory\":512}}"
            .formatted(Runtime.version().feature(), Base64.getEncoder().encodeToString(code));
    put("/api/v1/namespaces/_/actions/" + name + "?overwrite=true", body);
  }

  /** Puts a JSON document, and returns the answer's beginning. */
  String put(String path, String body) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) server.resolve(path).toURL().openConnection();
    try {
      connection.setConnectTimeout(CONNECT_MILLIS);
      connection.setReadTimeout(PUT_MILLIS);
      connection.setRequestMethod("PUT");
      connection.setRequestProperty("Content-Type", "application/json");
      connection.setRequestProperty(
          "Authorization", "Basic " + Base64.getEncoder().encodeToString(key.getBytes(StandardCharsets.UTF_8)));
      connection.setDoOutput(true);
      try (OutputStream out = connection.getOutputStream()) {
        out.write(body.getBytes(StandardCharsets.UTF_8));
      }
      int status = connection.getResponseCode();
      try (InputStream in = status == HttpURLConnection.HTTP_OK ? connection.getInputStream() : connection.getErrorStream()) {
        String answer = in == null ? "" : new String(in.readNBytes(2000), StandardCharsets.UTF_8);
        if (status != HttpURLConnection.HTTP_OK) {
          throw new IOException("%s is answered %d %s".formatted(path, status, answer));
        }
        return answer;
      }
    } finally {
      connection.disconnect();
    }
  }
}
