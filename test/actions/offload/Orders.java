package orders;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** A plain Java application, which knows nothing of Forerun: it reads numbers of orders from its input and prints their prices. */
public final class Orders {
  record Order(int number, List<Integer> items) {}

  private final Map<Integer, Order> known = new HashMap<>();
  private final AtomicLong sum = new AtomicLong();
  private int priced;

  /** The root. */
  Object price(int number) {
    Order order = known.computeIfAbsent(number, n -> new Order(n, new ArrayList<>()));
    for (int i = 1; i <= number; i++) {
      order.items().add(i * number);
    }
    int price = order.items().stream().mapToInt(Integer::intValue).sum();
    if (number == 13) {
      throw new IllegalArgumentException("unlucky " + order.items().size());
    }
    priced++;
    synchronized (this) {
      sum.addAndGet(price);
    }
    return price + " " + priced + " " + sum.get() + " " + System.getProperty("orders.place");
  }

  /** Reads lines until the end of the input. */
  public static void main(String[] arguments) throws Exception {
    System.setProperty("orders.place", "here");
    Orders orders = new Orders();
    var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        System.out.println(orders.price(Integer.parseInt(line)));
      } catch (IllegalArgumentException e) {
        System.out.println(e.getMessage() + " " + e.getStackTrace()[0].getMethodName());
      }
    }
    System.out.println(orders.known.size() + " " + orders.priced + " " + orders.sum);
  }
}
