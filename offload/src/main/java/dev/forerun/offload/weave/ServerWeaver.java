package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;

/** Changes classes of the application on the server: roots ask first whether to run, and lambdas can be made again. */
public final class ServerWeaver {
  private static final String ENTRY = "dev/forerun/offload/agent/Entry";
  private static final String FACTORY = "java/lang/invoke/LambdaMetafactory";
  private static final String ALTERNATIVE =
      "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/invoke/MethodType;[Ljava/lang/Object;)Ljava/lang/invoke/CallSite;";

  private ServerWeaver() {}

  /**
   * Changes a class.
   *
   * @param roots names of methods, as Class#method
   * @return its bytes; null if nothing is to be changed
   */
  public static byte[] weave(byte[] original, Set<String> roots) {
    ClassReader reader = new ClassReader(original);
    ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
    String name = reader.getClassName().replace('/', '.');
    boolean[] changed = {false};
    reader.accept(
        new ClassVisitor(ASM9, writer) {
          @Override
          public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] exceptions) {
            boolean isRoot =
                roots.contains(name + "#" + method) && (access & (ACC_STATIC | ACC_SYNTHETIC | ACC_ABSTRACT | ACC_NATIVE)) == 0;
            changed[0] |= isRoot;
            return new MethodVisitor(ASM9, super.visitMethod(access, method, descriptor, signature, exceptions)) {
              @Override
              public void visitCode() {
                super.visitCode();
                if (isRoot) {
                  ask(mv, name + "#" + method + descriptor, descriptor);
                }
              }

              @Override
              public void visitInvokeDynamicInsn(String called, String type, Handle bootstrap, Object... arguments) {
                changed[0] |= isLambda(bootstrap);
                if (isLambda(bootstrap)) {
                  remakeable(mv, called, type, arguments);
                } else {
                  super.visitInvokeDynamicInsn(called, type, bootstrap, arguments);
                }
              }
            };
          }
        },
        0);
    return changed[0] ? writer.toByteArray() : null;
  }

  static boolean isLambda(Handle bootstrap) {
    return bootstrap.getOwner().equals(FACTORY) && bootstrap.getName().equals("metafactory");
  }

  /** A lambda that is serializable, so that it tells what it is made of. */
  static void remakeable(MethodVisitor to, String called, String type, Object[] arguments) {
    Handle bootstrap = new Handle(H_INVOKESTATIC, FACTORY, "altMetafactory", ALTERNATIVE, false);
    to.visitInvokeDynamicInsn(called, type, bootstrap, arguments[0], arguments[1], arguments[2], 1);
  }

  private static void ask(MethodVisitor to, String root, String descriptor) {
    to.visitLdcInsn(root);
    to.visitVarInsn(ALOAD, 0);
    Code.parameters(to, Type.getArgumentTypes(descriptor), 1);
    to.visitMethodInsn(
        INVOKESTATIC, ENTRY, "call", "(Ljava/lang/String;Ljava/lang/Object;[Ljava/lang/Object;)Ljava/lang/Object;", false);
    Label local = new Label();
    to.visitInsn(DUP);
    to.visitFieldInsn(GETSTATIC, ENTRY, "LOCAL", "Ljava/lang/Object;");
    to.visitJumpInsn(IF_ACMPEQ, local);
    Code.giveBack(to, Type.getReturnType(descriptor));
    to.visitLabel(local);
    to.visitFrame(F_SAME1, 0, null, 1, new Object[] {"java/lang/Object"});
    to.visitInsn(POP);
  }
}
