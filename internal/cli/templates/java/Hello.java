import com.google.gson.JsonObject;

/** Greets the person that the caller names. */
public class Hello {
    public static JsonObject main(JsonObject args) {
        JsonObject result = new JsonObject();
        result.addProperty("greeting", "Hello " + args.get("name").getAsString() + "!");
        return result;
    }
}
