import jwt from "jsonwebtoken";
import { byKid, current } from "./keys";

export class TokenInvalid extends Error {}

export function sign(userId: string): string {
  const { kid, pem } = current();
  return jwt.sign({ sub: userId }, pem, { algorithm: "RS256", keyid: kid, expiresIn: "15m" });
}

export function verify(token: string): jwt.JwtPayload {
  const key = byKid(jwt.decode(token, { complete: true })?.header.kid ?? "");
  if (!key) throw new TokenInvalid();
  return jwt.verify(token, key.pem, { algorithms: ["RS256"] }) as jwt.JwtPayload;
}
