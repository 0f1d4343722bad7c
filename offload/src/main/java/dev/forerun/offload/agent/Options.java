package dev.forerun.offload.agent;

import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What the agent is told: NAME=VALUE, with commas between, behind the jar's name. Items of a list have semicolons between.
 *
 * @param server address of Forerun: url, or FORERUN_URL
 * @param key "uuid:key" of the tenant: in the file that key-file or FORERUN_KEY_FILE names
 * @param roots methods that are offloaded, as Class#method
 * @param move prefixes of the names of classes whose objects move; without it the packages of the main class and of the roots
 * @param reads methods of objects that stay which only read, as Class#method
 * @param silence milliseconds that a function may be silent before it is given up: silence=SECONDS, 3 without it
 * @param name of the application in Forerun: name, or the name of its jar or main class
 * @param mode off, auto or force
 */
record Options(URI server, String key, Set<String> roots, Set<String> move, Set<String> reads, int silence, String name, String mode) {
  private static final Set<String> NAMES = Set.of("url", "key-file", "roots", "move", "reads", "mode", "silence", "name");

  static Options parse(String given, Map<String, String> environment) throws IOException {
    Map<String, String> values = new HashMap<>();
    for (String pair : given == null || given.isEmpty() ? new String[0] : given.split(",")) {
      int equals = pair.indexOf('=');
      if (equals < 0 || !NAMES.contains(pair.substring(0, equals))) {
        throw new IllegalArgumentException("%s is not an option: write NAME=VALUE with a name of %s".formatted(pair, NAMES));
      }
      values.put(pair.substring(0, equals), pair.substring(equals + 1));
    }
    String mode = values.getOrDefault("mode", "off");
    if (!Set.of("off", "auto", "force").contains(mode)) {
      throw new IllegalArgumentException("mode=%s is not a mode: write off, auto or force".formatted(mode));
    }
    Set<String> roots = methods(values.get("roots"));
    if (mode.equals("off") || mode.equals("force") && roots.isEmpty()) {
      return new Options(null, null, roots, Set.of(), Set.of(), 0, "", "off");
    }
    String url = values.getOrDefault("url", environment.get("FORERUN_URL"));
    String file = values.getOrDefault("key-file", environment.get("FORERUN_KEY_FILE"));
    if (url == null || file == null) {
      throw new IllegalArgumentException("url and key-file are missing: give them, or set FORERUN_URL and FORERUN_KEY_FILE");
    }
    return new Options(safe(URI.create(url)), Files.readString(Path.of(file)).strip(), roots, move(values.get("move"), roots),
        methods(values.get("reads")), seconds(values.getOrDefault("silence", "3")), name(values.getOrDefault("name", Program.name())), mode);
  }

  private static int seconds(String value) {
    if (!value.matches("[1-9][0-9]{0,3}")) {
      throw new IllegalArgumentException("silence=%s is not a number of seconds: write 1 to 9999".formatted(value));
    }
    return Integer.parseInt(value) * 1000;
  }

  private static String name(String value) {
    if (!value.matches("[A-Za-z0-9._-]{1,100}")) {
      throw new IllegalArgumentException("name=%s is not a name: write 1 to 100 letters, digits, dots, dashes".formatted(value));
    }
    return value;
  }

  private static Set<String> methods(String value) {
    Set<String> methods = list(value);
    for (String method : methods) {
      if (method.indexOf('#') <= 0) {
        throw new IllegalArgumentException("%s is not a method: write Class#method".formatted(method));
      }
    }
    return methods;
  }

  private static Set<String> list(String value) {
    return value == null || value.isEmpty() ? Set.of() : new LinkedHashSet<>(List.of(value.split(";")));
  }

  private static Set<String> move(String value, Set<String> roots) {
    if (value != null) {
      return list(value);
    }
    Set<String> packages = new LinkedHashSet<>();
    if (!Program.mainPackage().isEmpty()) {
      packages.add(Program.mainPackage());
    }
    for (String root : roots) {
      String type = root.substring(0, root.indexOf('#'));
      int dot = type.lastIndexOf('.') + 1;
      packages.add(dot > 0 ? type.substring(0, dot) : type);
    }
    return packages;
  }

  /** The key crosses in clear only within this machine. */
  private static URI safe(URI url) throws UnknownHostException {
    boolean isPlain = "http".equals(url.getScheme());
    if (url.getHost() == null || !isPlain && !"https".equals(url.getScheme())) {
      throw new IllegalArgumentException(url + " is not an address: write https://HOST, or http://127.0.0.1:PORT");
    }
    if (isPlain && !InetAddress.getByName(url.getHost()).isLoopbackAddress()) {
      throw new IllegalArgumentException(url + " would send the key in clear over a network: write https");
    }
    return url;
  }

  /** Whether a class belongs to the application. */
  boolean isApplication(String name) {
    for (String prefix : move) {
      if (name.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }
}
