// Reports pressed and released keys while an agent is played with the keyboard. viser has hotkeys only: they do not
// report releases, and viser's camera moves by the same keys. Each press or release therefore triggers a hotkey of its
// own, which viser sends over its connection: Alt+Shift+key for a press, Ctrl+Alt+Shift+key for a release.
window.doorstepKeys ??= (() => {
  const names = {
    KeyW: "W", KeyA: "A", KeyS: "S", KeyD: "D", KeyQ: "Q", KeyE: "E", KeyG: "G", KeyR: "R",
    ShiftLeft: "F", ShiftRight: "F",
  };
  const menu = "[aria-haspopup=listbox]"; // it keeps the focus after a choice
  const typing = `textarea, input:not([type=checkbox], [type=radio], [type=range], ${menu}), [contenteditable=true]`;
  const held = new Set();
  let playing = false;

  // Does not bubble: viser's hotkeys listen at the document's element, its camera above it.
  function report(name, down) {
    const hotkey = { key: name.toLowerCase(), code: `Key${name}`, altKey: true, shiftKey: true, ctrlKey: !down };
    document.documentElement.dispatchEvent(new KeyboardEvent("keydown", hotkey));
  }

  function releaseAll() {
    held.forEach((name) => report(name, false));
    held.clear();
  }

  function onDown(event) {
    const name = names[event.code];
    const ours = event.isTrusted && playing && name && !event.ctrlKey && !event.altKey && !event.metaKey;
    if (!ours || event.target.matches(typing)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    if (held.has(name)) return;
    held.add(name);
    report(name, true);
  }

  function onUp(event) {
    const name = names[event.code];
    if (event.isTrusted && held.delete(name)) report(name, false);
  }

  window.addEventListener("keydown", onDown, true);
  window.addEventListener("keyup", onUp, true);
  window.addEventListener("blur", releaseAll);

  return {
    play(on) {
      releaseAll();
      playing = on;
    },
    isPlaying: () => playing,
  };
})();
