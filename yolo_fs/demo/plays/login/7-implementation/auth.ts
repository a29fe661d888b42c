import bcrypt from "bcrypt";
import { Router } from "express";
import { sign } from "../auth/tokens";
import { limited } from "../limit";
import { users } from "../users";

export const authRouter = Router();

authRouter.post("/auth/login", limited(5), async (request, response) => {
  const user = await users.byMail(request.body.mail);
  const known = user && (await bcrypt.compare(request.body.password, user.hash));
  if (!known) return response.status(401).end();
  return response.json({ token: sign(user.id) });
});
