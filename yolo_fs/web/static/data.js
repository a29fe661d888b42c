// What the server says: answers by name, and the journal as it grows.

/** Ask for one answer. Returns the data, or throws an error with the server's words. */
export async function ask(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const answer = await fetch(`/api/${name}?${new URLSearchParams(given)}`, { signal });
  if (!(answer.headers.get("content-type") ?? "").startsWith("application/json")) throw new Error("the board has stopped: start it again");
  const told = await answer.json();
  if (!told.ok) throw new Error(told.findings.map((one) => `${one.message} ${one.hint}`).join("; "));
  return told.data;
}

export async function draw(parameters, signal = undefined) {
  const answer = await fetch(`/api/plot?${new URLSearchParams(parameters)}`, { signal });
  return answer.ok ? answer.text() : "";
}

/** Follow the journal, and the board as it changes. The browser itself comes back after a break, and names the last event that it has. */
export function follow(parameters, { onEvent, onBoard, onChange, onState }) {
  const source = new EventSource(`/api/events?${new URLSearchParams(parameters)}`);
  source.addEventListener("hello", (message) => onState(true, JSON.parse(message.data).newest));
  source.addEventListener("journal", (message) => onEvent(JSON.parse(message.data)));
  source.addEventListener("board", (message) => onBoard(JSON.parse(message.data)));
  source.addEventListener("changed", () => onChange());
  source.onerror = () => onState(false, 0);
  return () => source.close();
}

/** Return a function that runs `look` soon, never twice at once, and once more when it was asked meanwhile. */
export function lately(look) {
  let running = false;
  let again = false;
  return async function run() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await look();
      } while (again);
    } finally {
      running = false;
    }
  };
}
