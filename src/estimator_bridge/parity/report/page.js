(() => {
  "use strict";
  // Rows of [x in percent, step, legacy, modern, abs_diff, rel_diff]; the page is complete without this script.
  const rows = JSON.parse(document.getElementById("readouts").textContent);
  const readout = document.querySelector(".readout");
  const names = ["step", "legacy", "modern", "abs_diff", "rel_diff"];
  const cursors = [];
  let current = rows.length - 1;

  const show = (index) => {
    current = Math.min(Math.max(index, 0), rows.length - 1);
    readout.replaceChildren(...names.flatMap((name, column) => {
      const value = document.createElement("b");
      value.textContent = rows[current][column + 1];
      return [`${column ? " · " : ""}${name} `, value];
    }));
    for (const cursor of cursors) {
      cursor.hidden = false;
      cursor.style.left = `${rows[current][0]}%`;
    }
  };

  const nearest = (percent) => {
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle][0] < percent) low = middle + 1; else high = middle;
    }
    return low > 0 && percent - rows[low - 1][0] < rows[low][0] - percent ? low - 1 : low;
  };

  const keys = { ArrowLeft: () => current - 1, ArrowRight: () => current + 1, Home: () => 0, End: () => rows.length - 1 };

  for (const frame of document.querySelectorAll(".frame")) {
    const style = getComputedStyle(frame);
    const surface = document.createElement("div");
    surface.className = "surface";
    surface.tabIndex = 0;
    surface.setAttribute("aria-label", "Read off a step; left and right arrow move");
    surface.style.inset = `${style.paddingTop} ${style.paddingRight} ${style.paddingBottom} ${style.paddingLeft}`;
    const cursor = document.createElement("i");
    cursor.hidden = true;
    surface.append(cursor);
    cursors.push(cursor);
    surface.addEventListener("pointermove", (event) => {
      const box = surface.getBoundingClientRect();
      show(nearest((event.clientX - box.left) / box.width * 100));
    });
    surface.addEventListener("keydown", (event) => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      show(keys[event.key]());
    });
    frame.append(surface);
  }
  readout.hidden = false;
  readout.textContent = "Point at a curve, or focus it and use the arrow keys, to read off a step.";
})();
