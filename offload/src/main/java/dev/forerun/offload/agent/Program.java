package dev.forerun.offload.agent;

import java.io.IOException;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;

/** The program that this JVM was started with. */
final class Program {
  private Program() {}

  /** The package of its main class, as the beginning of its classes' names; empty if there is none, or it is not known. */
  static String mainPackage() {
    String main = mainClass(System.getProperty("sun.java.command", ""), System.getProperty("java.class.path", ""));
    return main.substring(0, main.lastIndexOf('.') + 1);
  }

  /** A name for it: its jar's, without the ending, or its main class's. */
  static String name() {
    String path = System.getProperty("java.class.path", "");
    boolean isJar = path.endsWith(".jar") && System.getProperty("sun.java.command", "").startsWith(path);
    String name = isJar ? path.substring(path.lastIndexOf('/') + 1, path.length() - 4) : System.getProperty("sun.java.command", "").split(" ", 2)[0];
    String safe = name.replaceAll("[^A-Za-z0-9._-]", "-");
    return safe.isEmpty() ? "application" : safe.substring(0, Math.min(100, safe.length()));
  }

  private static String mainClass(String command, String path) {
    if (!path.endsWith(".jar") || !command.startsWith(path)) {
      String main = command.split(" ", 2)[0];
      return main.substring(main.indexOf('/') + 1); // behind its module
    }
    try (JarFile jar = new JarFile(path)) {
      Manifest manifest = jar.getManifest();
      Attributes attributes = manifest == null ? new Attributes() : manifest.getMainAttributes();
      String started = attributes.getValue("Start-Class"); // of a Spring Boot jar, whose main class is Spring's launcher
      String main = started != null ? started : attributes.getValue(Attributes.Name.MAIN_CLASS);
      return main == null ? "" : main.strip();
    } catch (IOException e) {
      return "";
    }
  }
}
