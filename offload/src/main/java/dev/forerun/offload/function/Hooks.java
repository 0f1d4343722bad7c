package dev.forerun.offload.function;

import dev.forerun.offload.graph.Stub;

/** What woven code calls in a function. */
public final class Hooks {
  /** That of the call under way. */
  static volatile Realm realm;

  private Hooks() {}

  /** Before a field is read: a stand-in's comes from the server. */
  public static void touch(Object object, String owner, String name) {
    if (object instanceof Stub) {
      realm.touch(object, owner, name);
    }
  }

  /** After a field was written: a stand-in's goes to the server. */
  public static void stored(Object object, String owner, String name) {
    if (object instanceof Stub) {
      realm.stored(object, owner, name);
    }
  }

  /** Exchanges what changed. */
  public static void sync() {
    realm.sync();
  }

  /** Before a monitor is entered. */
  public static void enter(Object object) {
    realm.enter(object);
  }

  /** Before a monitor is left. */
  public static void exit(Object object) {
    realm.exit(object);
  }

  /** Refuses the call if an object is an opaque stand-in, where it would reach code of the JDK. */
  public static void guard(Object object) {
    if (realm.heap.isOpaque(object)) {
      throw realm.refuse(object.getClass().getName() + " stays on the server, and would reach code of the JDK");
    }
  }

  /** The same for any stand-in, where code of the JDK would look into its fields. */
  public static void guardField(Object object) {
    if (isAway(object)) {
      throw realm.refuse("a field of an object that stays on the server is reached, of " + object.getClass().getName());
    }
  }

  /** Refuses the call. */
  public static void refuse(String what) {
    throw realm.refuse(what + " is not supported in a function");
  }

  /** Whether calls of an object go to the server. */
  public static boolean isAway(Object object) {
    return object instanceof Stub || realm.heap.isOpaque(object);
  }

  /** Calls a method of an object that stays on the server. */
  public static Object invoke(Object object, String owner, String name, String descriptor, Object[] parameters) throws Throwable {
    return realm.invoke(object, owner, name, descriptor, parameters);
  }

  /** Calls a static method of the JDK on the server. */
  public static Object invokeStatic(String owner, String name, String descriptor, Object[] parameters) throws Throwable {
    return realm.invoke(null, owner, name, descriptor, parameters);
  }

  /** Object.getClass. */
  public static Class<?> classOf(Object object) throws Throwable {
    return object instanceof Stub ? realm.classOf(object) : object.getClass();
  }

  /** System.identityHashCode. */
  public static int identityHashCode(Object object) {
    return object == null ? 0 : realm.identityHashCode(object);
  }

  /** Thread.holdsLock. */
  public static boolean holdsLock(Object object) {
    return realm.holdsLock(object);
  }

  /** Thread.sleep. */
  public static void sleep(long millis) throws Throwable {
    realm.sleep(millis);
  }

  /** Thread.sleep. */
  public static void sleep(long millis, int nanos) throws Throwable {
    realm.sleep(millis + (nanos > 0 ? 1 : 0));
  }

  /** Object.wait. */
  public static void wait(Object object) throws Throwable {
    realm.await(object, "wait", "()V");
  }

  /** Object.wait. */
  public static void wait(Object object, long millis) throws Throwable {
    realm.await(object, "wait", "(J)V", millis);
  }

  /** Object.wait. */
  public static void wait(Object object, long millis, int nanos) throws Throwable {
    realm.await(object, "wait", "(JI)V", millis, nanos);
  }

  /** Object.notify. */
  public static void notify(Object object) throws Throwable {
    realm.await(object, "notify", "()V");
  }

  /** Object.notifyAll. */
  public static void notifyAll(Object object) throws Throwable {
    realm.await(object, "notifyAll", "()V");
  }

  /** In the place of a static initializer. */
  public static void statics(Class<?> type) {
    realm.fetchStatics(type);
  }
}
