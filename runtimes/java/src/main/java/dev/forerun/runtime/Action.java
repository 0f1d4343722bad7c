package dev.forerun.runtime;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.jar.JarFile;
import java.util.jar.Manifest;

/** An action's code: a class in a jar, and the name of its method. */
final class Action {
  private final Class<?> type;
  private final String method;

  private Action(Class<?> type, String method) {
    this.type = type;
    this.method = method;
  }

  /**
   * Loads an action as OpenWhisk does.
   *
   * @param jar the file
   * @param main "Class" or "Class#method"; empty: the jar's Main-Class
   * @throws ReflectiveOperationException if there is no such class or method
   */
  static Action load(Path jar, String main) throws IOException, ReflectiveOperationException {
    String entry = main.isEmpty() ? mainClass(jar) : main;
    int hash = entry.indexOf('#');
    String className = hash < 0 ? entry : entry.substring(0, hash);
    String method = hash < 0 || hash + 1 == entry.length() ? "main" : entry.substring(hash + 1);
    // Closed with the process: classes are loaded from it as long as the action executes.
    @SuppressWarnings("resource")
    URLClassLoader loader = new URLClassLoader(new URL[] {jar.toUri().toURL()});
    Thread.currentThread().setContextClassLoader(loader);
    Class<?> type = Class.forName(className, true, loader);
    if (Arrays.stream(type.getDeclaredMethods()).noneMatch(m -> m.getName().equals(method))) {
      throw new NoSuchMethodException(method);
    }
    return new Action(type, method);
  }

  private static String mainClass(Path jar) throws IOException, ClassNotFoundException {
    try (JarFile file = new JarFile(jar.toFile());
        InputStream in = file.getInputStream(file.getEntry(JarFile.MANIFEST_NAME))) {
      String name = new Manifest(in).getMainAttributes().getValue("Main-Class");
      if (name != null) {
        return name;
      }
    } catch (NullPointerException e) { // no manifest
      throw new ClassNotFoundException("the action names no main class, and its jar has no manifest");
    }
    throw new ClassNotFoundException("the action names no main class, and neither does its jar");
  }

  /**
   * Calls the method.
   *
   * @param input a JsonObject or JsonArray
   * @throws InvocationTargetException if it throws
   * @throws NoSuchMethodException if there is no public static one for such an input and result
   */
  JsonElement call(JsonElement input) throws ReflectiveOperationException {
    Class<?> parameter = input.isJsonObject() ? JsonObject.class : JsonArray.class;
    Method main = type.getMethod(method, parameter);
    Class<?> result = main.getReturnType();
    if (!Modifier.isStatic(main.getModifiers())
        || (result != JsonObject.class && result != JsonArray.class)) {
      throw new NoSuchMethodException(method);
    }
    main.setAccessible(true); // its class need not be public
    JsonElement output = (JsonElement) main.invoke(null, input);
    if (output == null) {
      throw new NullPointerException("The action returned null");
    }
    return output;
  }
}
