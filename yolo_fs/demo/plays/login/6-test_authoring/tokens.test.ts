import { expect, test } from "vitest";
import { sign, verify } from "../../src/auth/tokens";

test("a fresh token verifies", () => {
  expect(verify(sign("u1")).sub).toBe("u1");
});
