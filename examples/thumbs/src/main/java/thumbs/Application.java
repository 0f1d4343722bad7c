package thumbs;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;

/** An album of pictures. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class Application {
  /** Starts the application. */
  public static void main(String[] arguments) {
    SpringApplication.run(Application.class, arguments);
  }
}
