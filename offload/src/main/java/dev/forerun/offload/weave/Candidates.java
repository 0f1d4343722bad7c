package dev.forerun.offload.weave;

import java.util.Set;

/** The methods that mode auto follows: those that an application's author marked as entries or as services. */
final class Candidates {
  private static final String SPRING = "Lorg/springframework/";
  private static final Set<String> OF_CLASSES =
      Set.of(
          SPRING + "stereotype/Service;", SPRING + "stereotype/Controller;", SPRING + "web/bind/annotation/RestController;",
          SPRING + "transaction/annotation/Transactional;", "Ljakarta/ws/rs/Path;", "Ljavax/ws/rs/Path;");
  private static final Set<String> OF_METHODS =
      Set.of(
          SPRING + "web/bind/annotation/RequestMapping;", SPRING + "web/bind/annotation/GetMapping;",
          SPRING + "web/bind/annotation/PostMapping;", SPRING + "web/bind/annotation/PutMapping;",
          SPRING + "web/bind/annotation/DeleteMapping;", SPRING + "web/bind/annotation/PatchMapping;",
          SPRING + "scheduling/annotation/Scheduled;", SPRING + "transaction/annotation/Transactional;",
          SPRING + "amqp/rabbit/annotation/RabbitListener;", SPRING + "kafka/annotation/KafkaListener;",
          SPRING + "jms/annotation/JmsListener;", "Ljakarta/ws/rs/GET;", "Ljakarta/ws/rs/POST;", "Ljakarta/ws/rs/PUT;",
          "Ljakarta/ws/rs/DELETE;", "Ljavax/ws/rs/GET;", "Ljavax/ws/rs/POST;", "Ljavax/ws/rs/PUT;", "Ljavax/ws/rs/DELETE;");
  private static final String ASYNC = SPRING + "scheduling/annotation/Async;";
  private static final Set<String> OF_OBJECT = Set.of("toString()Ljava/lang/String;", "hashCode()I", "equals(Ljava/lang/Object;)Z");

  /** Beginnings of types whose objects go on after the method has returned. */
  private static final Set<String> LATER =
      Set.of(
          "Ljava/util/concurrent/", "Ljava/util/stream/", "Ljava/util/Iterator", "Ljava/io/", "Lreactor/", "Lorg/reactivestreams/", "Lio/reactivex/",
          SPRING + "web/servlet/mvc/method/annotation/", SPRING + "web/context/request/async/", "Lio/smallrye/mutiny/");

  private Candidates() {}

  static boolean isOfClass(String annotation) {
    return OF_CLASSES.contains(annotation);
  }

  static boolean isOfMethod(String annotation) {
    return OF_METHODS.contains(annotation);
  }

  static boolean isAsynchronous(String annotation) {
    return annotation.equals(ASYNC);
  }

  /** Whether a method ends with its work, and is not one of Object. */
  static boolean mayBe(String method, String descriptor) {
    String result = descriptor.substring(descriptor.indexOf(')') + 1);
    return !OF_OBJECT.contains(method + descriptor) && LATER.stream().noneMatch(result::startsWith);
  }
}
