package dev.forerun.offload.graph;

/** Which classes have the hash code of Object, that is of identity. Their objects keep it as they cross. */
final class Identities {
  private static final ClassValue<Boolean> BY_IDENTITY =
      new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
          try {
            Class<?> owner = type.getMethod("hashCode").getDeclaringClass();
            return owner == Object.class || owner == Enum.class;
          } catch (NoSuchMethodException e) {
            return false;
          }
        }
      };

  private Identities() {}

  static boolean isByIdentity(Class<?> type) {
    return BY_IDENTITY.get(type);
  }

  /** The hash to send with an object: 0 if none is needed. */
  static int of(Object object) {
    return object.getClass().isArray() || !isByIdentity(object.getClass()) ? 0 : System.identityHashCode(object);
  }
}
