export async function login(email: string, password: string): Promise<string | null> {
  const user = await find(email);
  return user && (await matches(password, user)) ? sign(user.id) : null;
}
