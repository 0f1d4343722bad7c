package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Changes a class for functions. No branch is added to a method of the application, so its stack maps stay, and the verifier works:
 *
 * <ul>
 *   <li>fields of stand-ins are read and written on the server, accesses of volatile fields exchange what changed;
 *   <li>the server holds the monitors of shared objects;
 *   <li>calls of the JDK go through a bridge, a static method that calls the server if the receiver stays there, and guards that no
 *       opaque stand-in reaches the JDK;
 *   <li>statics come from the server in the place of the initializer;
 *   <li>nothing is final, so that stand-ins can extend it.
 * </ul>
 */
public final class FunctionWeaver {
  /** Begins the names of methods that weaving adds. */
  public static final String ADDED = "$forerun$";

  private final Names names;

  /** Weaves classes that this loader of the server knows. */
  public FunctionWeaver(ClassLoader loader) {
    this.names = new Names(loader);
  }

  /** Changes a class file. */
  public byte[] weave(byte[] original) {
    ClassNode node = new ClassNode();
    new ClassReader(original).accept(node, 0);
    boolean isInterface = (node.access & ACC_INTERFACE) != 0;
    if ((node.access & ACC_RECORD) == 0) {
      node.access &= ~ACC_FINAL;
    }
    node.permittedSubclasses = null;
    initializer(node, isInterface);
    List<MethodNode> added = new ArrayList<>();
    Bridges bridges = new Bridges(node.name, isInterface);
    for (MethodNode method : node.methods) {
      if (method.name.equals("<clinit>") || (method.access & (ACC_ABSTRACT | ACC_NATIVE)) != 0) {
        continue;
      }
      new Body(node.name, method, names, bridges).weave();
      if ((method.access & ACC_SYNCHRONIZED) != 0) {
        added.add(locked(node.name, method));
      }
      if ((method.access & (ACC_STATIC | ACC_PRIVATE)) == 0 && !isInterface) {
        method.access &= ~ACC_FINAL;
      }
    }
    node.methods.addAll(added);
    node.methods.addAll(bridges.methods());
    ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    node.accept(writer);
    return writer.toByteArray();
  }

  /** In the place of a static initializer the statics are asked for; also where there is none but the server may have set them. */
  private static void initializer(ClassNode node, boolean isInterface) {
    boolean hasStatics = false;
    for (FieldNode field : node.fields) {
      hasStatics |= (field.access & ACC_STATIC) != 0 && (field.value == null || (field.access & ACC_FINAL) == 0);
      if ((field.access & ACC_STATIC) != 0 && (field.access & ACC_FINAL) == 0) {
        field.value = null; // the server's value comes later
      }
    }
    node.methods.removeIf(method -> method.name.equals("<clinit>"));
    if (!hasStatics) {
      return;
    }
    MethodNode fetch = new MethodNode(ACC_STATIC, "<clinit>", "()V", null, null);
    fetch.visitCode();
    fetch.visitLdcInsn(Type.getObjectType(node.name));
    Code.hook(fetch, "statics", "(Ljava/lang/Class;)V");
    fetch.visitInsn(RETURN);
    fetch.visitMaxs(1, 0);
    node.methods.add(fetch);
  }

  /** A synchronized method becomes one that takes the monitor, calls the other, and gives the monitor back. */
  private static MethodNode locked(String owner, MethodNode inner) {
    boolean isStatic = (inner.access & ACC_STATIC) != 0;
    MethodNode outer =
        new MethodNode(inner.access & ~(ACC_SYNCHRONIZED | ACC_FINAL), inner.name, inner.desc, inner.signature, inner.exceptions.toArray(String[]::new));
    outer.visibleAnnotations = inner.visibleAnnotations;
    outer.visibleParameterAnnotations = inner.visibleParameterAnnotations;
    outer.parameters = inner.parameters;
    inner.name = ADDED + "locked$" + inner.name;
    inner.access = inner.access & ~(ACC_PUBLIC | ACC_PROTECTED | ACC_FINAL | ACC_SYNCHRONIZED) | ACC_PRIVATE | ACC_SYNTHETIC;
    inner.visibleAnnotations = null;
    inner.visibleParameterAnnotations = null;
    Label from = new Label();
    Label to = new Label();
    Label handler = new Label();
    outer.visitCode();
    outer.visitTryCatchBlock(from, to, handler, null);
    monitor(outer, owner, isStatic, "enter");
    outer.visitLabel(from);
    if (!isStatic) {
      outer.visitVarInsn(ALOAD, 0);
    }
    Code.load(outer, Type.getArgumentTypes(inner.desc), isStatic ? 0 : 1);
    outer.visitMethodInsn(isStatic ? INVOKESTATIC : INVOKESPECIAL, owner, inner.name, inner.desc, false);
    outer.visitLabel(to);
    monitor(outer, owner, isStatic, "exit");
    outer.visitInsn(Type.getReturnType(inner.desc).getOpcode(IRETURN));
    outer.visitLabel(handler);
    outer.visitFrame(F_SAME1, 0, null, 1, new Object[] {"java/lang/Throwable"});
    monitor(outer, owner, isStatic, "exit");
    outer.visitInsn(ATHROW);
    outer.visitMaxs(0, 0);
    return outer;
  }

  private static void monitor(MethodVisitor to, String owner, boolean isStatic, String hook) {
    if (isStatic) {
      to.visitLdcInsn(Type.getObjectType(owner));
    } else {
      to.visitVarInsn(ALOAD, 0);
    }
    Code.hook(to, hook, "(Ljava/lang/Object;)V");
  }
}
