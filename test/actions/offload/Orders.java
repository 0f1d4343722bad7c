package orders;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/** A plain Java application, which knows nothing of Forerun: it reads numbers of orders from its input and prints their prices. */
public final class Orders {
  private static final int DELAYED = 7;
  private static final int BILLED = 8;

  record Order(int number, List<Integer> items) {}

  private final Map<Integer, Order> known = new HashMap<>();
  private final AtomicLong sum = new AtomicLong();
  private int priced;

  /** The root. */
  Object price(int number) throws InterruptedException {
    if (number == DELAYED) {
      System.out.println("order " + number + " waits");
      while (System.getProperty("orders.go") == null) {
        Thread.sleep(20);
      }
    }
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
    if (number == BILLED) {
      System.setProperty("orders.billed", "yes");
      Thread.sleep(3_600_000);
    }
    String receipt = price + " " + priced + " " + sum.get() + " " + System.getProperty("orders.place");
    return number < 100 ? receipt : receipt.repeat(100_000);
  }

  /** Prints when it is asked first whether a delayed order may go on, and when an order is billed. */
  private static final class Asked extends Properties {
    private static final long serialVersionUID = 1;
    private boolean isTold;

    @Override
    public String getProperty(String name) {
      if (name.equals("orders.go") && !isTold) {
        isTold = true;
        System.out.println("asked");
      }
      return super.getProperty(name);
    }

    @Override
    public synchronized Object setProperty(String name, String value) {
      if (name.equals("orders.billed")) {
        System.out.println("billed");
      }
      return super.setProperty(name, value);
    }
  }

  private static void read(BlockingQueue<String> orders) {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.equals("go")) {
          System.setProperty("orders.go", "yes");
        } else {
          orders.add(line);
        }
      }
    } catch (IOException e) {
      // as at the end
    }
    orders.add("");
  }

  /** Reads lines until the end of the input. */
  public static void main(String[] arguments) throws Exception {
    Asked properties = new Asked();
    properties.putAll(System.getProperties());
    System.setProperties(properties);
    System.setProperty("orders.place", "here");
    Orders orders = new Orders();
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    Thread reader = new Thread(() -> read(lines));
    reader.setDaemon(true);
    reader.start();
    for (String line = lines.take(); !line.isEmpty(); line = lines.take()) {
      try {
        String receipt = (String) orders.price(Integer.parseInt(line));
        System.out.println(receipt.length() < 100 ? receipt : receipt.length() + " " + receipt.hashCode());
      } catch (IllegalArgumentException e) {
        System.out.println(e.getMessage() + " " + e.getStackTrace()[0].getMethodName());
      } catch (IllegalStateException e) {
        System.out.println("no receipt: " + e.getClass().getName());
      }
    }
    System.out.println(orders.known.size() + " " + orders.priced + " " + orders.sum);
  }
}
