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
