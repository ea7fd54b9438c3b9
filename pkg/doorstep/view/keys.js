// Tells which keys are held, while an agent is played with the keyboard: viser knows hotkeys only, which do not say when
// a key goes up, and moves the camera by the same keys. Each key that goes down or up presses a hotkey of its own, so
// that everything goes through viser's connection: Alt+Shift+key for down, Ctrl+Alt+Shift+key for up.
window.doorstepKeys ??= (() => {
  const names = {
    KeyW: "W", KeyA: "A", KeyS: "S", KeyD: "D", KeyQ: "Q", KeyE: "E", KeyG: "G", KeyR: "R",
    ShiftLeft: "F", ShiftRight: "F",
  };
  const menu = "[aria-haspopup=listbox]"; // keeps the focus after a choice
  const typing = `textarea, input:not([type=checkbox], [type=radio], [type=range], ${menu}), [contenteditable=true]`;
  const held = new Set();
  let playing = false;

  // Not bubbling: viser's hotkeys listen at the document's element, its camera above.
  function tell(name, down) {
    const hotkey = { key: name.toLowerCase(), code: `Key${name}`, altKey: true, shiftKey: true, ctrlKey: !down };
    document.documentElement.dispatchEvent(new KeyboardEvent("keydown", hotkey));
  }

  function letGo() {
    held.forEach((name) => tell(name, false));
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
    tell(name, true);
  }

  function onUp(event) {
    const name = names[event.code];
    if (event.isTrusted && held.delete(name)) tell(name, false);
  }

  window.addEventListener("keydown", onDown, true);
  window.addEventListener("keyup", onUp, true);
  window.addEventListener("blur", letGo);

  return {
    play(on) {
      letGo();
      playing = on;
    },
    isPlaying: () => playing,
  };
})();
