package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import java.util.Set;
import org.objectweb.asm.AnnotationVisitor;
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
    return weave(original, roots, false);
  }

  /** The same; if roots are followed, they tell their end, too, and without names all candidates are roots. */
  public static byte[] weave(byte[] original, Set<String> roots, boolean isFollowed) {
    ClassReader reader = new ClassReader(original);
    ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
    String name = reader.getClassName().replace('/', '.');
    boolean[] changed = {false};
    reader.accept(
        new ClassVisitor(ASM9, writer) {
          private boolean isOfCandidates;

          @Override
          public AnnotationVisitor visitAnnotation(String annotation, boolean isVisible) {
            isOfCandidates |= Candidates.isOfClass(annotation);
            return super.visitAnnotation(annotation, isVisible);
          }

          @Override
          public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] exceptions) {
            boolean mayBe = (access & (ACC_STATIC | ACC_SYNTHETIC | ACC_ABSTRACT | ACC_NATIVE)) == 0 && !method.equals("<init>");
            boolean isNamed = mayBe && roots.contains(name + "#" + method);
            boolean isSought = mayBe && isFollowed && roots.isEmpty() && Candidates.mayBe(method, descriptor);
            boolean isOfClass = isSought && isOfCandidates && (access & ACC_PRIVATE) == 0;
            String root = name + "#" + method + descriptor;
            return new MethodVisitor(ASM9, super.visitMethod(access, method, descriptor, signature, exceptions)) {
              private final Label from = new Label();
              private boolean isRoot = isNamed || isOfClass;
              private boolean isAsynchronous;

              @Override
              public AnnotationVisitor visitAnnotation(String annotation, boolean isVisible) {
                isRoot |= isSought && Candidates.isOfMethod(annotation);
                isAsynchronous |= isSought && Candidates.isAsynchronous(annotation);
                return super.visitAnnotation(annotation, isVisible);
              }

              @Override
              public void visitCode() {
                super.visitCode();
                isRoot &= !isAsynchronous;
                if (isRoot) {
                  changed[0] = true;
                  ask(mv, isFollowed ? "follow" : "call", root, descriptor);
                  mv.visitLabel(from);
                }
              }

              @Override
              public void visitInsn(int opcode) {
                if (isRoot && isFollowed && opcode >= IRETURN && opcode <= RETURN) {
                  tell(mv, root, Type.getReturnType(descriptor));
                }
                super.visitInsn(opcode);
              }

              @Override
              public void visitMaxs(int stack, int locals) {
                if (isRoot && isFollowed) {
                  tellThrown(mv, root, from);
                }
                super.visitMaxs(stack, locals);
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

  /** Tells before a return what is returned. */
  private static void tell(MethodVisitor to, String root, Type type) {
    if (type.getSort() == Type.VOID) {
      to.visitInsn(ACONST_NULL);
    } else {
      to.visitInsn(type.getSize() == 2 ? DUP2 : DUP);
      Code.box(to, type);
    }
    to.visitLdcInsn(root);
    to.visitMethodInsn(INVOKESTATIC, ENTRY, "returned", "(Ljava/lang/Object;Ljava/lang/String;)V", false);
  }

  /** Tells at the end of a method's code what is thrown in it: behind all other handlers. */
  private static void tellThrown(MethodVisitor to, String root, Label from) {
    Label end = new Label();
    to.visitLabel(end);
    to.visitTryCatchBlock(from, end, end, null);
    to.visitFrame(F_FULL, 0, null, 1, new Object[] {"java/lang/Throwable"});
    to.visitInsn(DUP);
    to.visitLdcInsn(root);
    to.visitMethodInsn(INVOKESTATIC, ENTRY, "thrown", "(Ljava/lang/Object;Ljava/lang/String;)V", false);
    to.visitInsn(ATHROW);
  }

  private static void ask(MethodVisitor to, String method, String root, String descriptor) {
    to.visitLdcInsn(root);
    to.visitVarInsn(ALOAD, 0);
    Code.parameters(to, Type.getArgumentTypes(descriptor), 1);
    to.visitMethodInsn(
        INVOKESTATIC, ENTRY, method, "(Ljava/lang/String;Ljava/lang/Object;[Ljava/lang/Object;)Ljava/lang/Object;", false);
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
