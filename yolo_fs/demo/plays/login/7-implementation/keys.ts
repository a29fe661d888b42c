import { readdirSync, readFileSync } from "node:fs";

export interface Key { kid: string; pem: Buffer }

const dir = process.env.KEY_DIR ?? "keys";
const all: Key[] = readdirSync(dir).sort().map((kid) => ({ kid, pem: readFileSync(`${dir}/${kid}`) }));

export const current = (): Key => all[all.length - 1];
export const byKid = (kid: string): Key | undefined => all.find((key) => key.kid === kid);
