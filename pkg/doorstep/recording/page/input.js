// What the mouse, fingers and keys do.

const TURN_PER_PIXEL = 0.006, MOVE_PER_KEY = 0.03, ZOOM_PER_NOTCH = 1.1;
const CLICK_REACH = 4; // pixels that a click may move

function listenToKeys(player) {
  const stride = ({ shiftKey }) => (shiftKey ? 10 : 1);
  const actions = {
    " ": () => player.togglePlay(),
    arrowleft: (event) => player.pause(player.moment - stride(event)),
    arrowright: (event) => player.pause(player.moment + stride(event)),
    home: () => player.pause(0),
    end: () => player.pause(Infinity),
    escape: () => player.showAll(),
    w: () => player.fly((free) => free.move(0, MOVE_PER_KEY)),
    s: () => player.fly((free) => free.move(0, -MOVE_PER_KEY)),
    a: () => player.fly((free) => free.move(-MOVE_PER_KEY, 0)),
    d: () => player.fly((free) => free.move(MOVE_PER_KEY, 0)),
    ...Object.fromEntries(CAMERAS.map((name, index) => [index + 1, () => player.show(name)])),
  };
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return;
    if (event.target instanceof HTMLButtonElement && event.key === " ") return; // clicks it
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}

// Dragging turns or moves the camera, a click chooses a world. In a frame of another page the wheel and fingers scroll
// that page until the picture was clicked.
function listenToMouse(canvas, player) {
  const isFramed = window.parent !== window;
  let way = 0;
  canvas.style.touchAction = isFramed ? "pan-y" : "none";
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => {
    way = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    way += event.buttons ? Math.hypot(event.movementX, event.movementY) : 0;
    if (!event.buttons || way <= CLICK_REACH) return;
    const slides = event.shiftKey || event.buttons !== 1, reach = canvas.clientHeight;
    player.fly((free) =>
      slides
        ? free.move(-event.movementX / reach, event.movementY / reach)
        : free.turn(-event.movementX * TURN_PER_PIXEL, event.movementY * TURN_PER_PIXEL),
    );
  });
  canvas.addEventListener("click", (event) => {
    if (way <= CLICK_REACH) player.showWorldAt(event.offsetX, event.offsetY);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (isFramed && document.activeElement !== canvas) return;
      event.preventDefault();
      player.fly((free) => free.zoom(ZOOM_PER_NOTCH ** Math.sign(event.deltaY)));
    },
    { passive: false },
  );
}
