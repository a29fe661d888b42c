export function LoginForm({ onLogin }: { onLogin: (token: string) => void }) {
  return <form aria-label="Log in" onSubmit={(event) => submit(event, onLogin)} />;
}
