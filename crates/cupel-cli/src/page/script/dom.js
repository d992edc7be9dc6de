
/* ---- dom.js: elements ---- */

/** The number of cards a list shows at first, and adds at a time. */
const PAGE = 30;
const COLORS = 8;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new (...rest: any[]) => T} type
 * @returns {T}
 */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

/**
 * A new element with a class and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {string} [className]
 * @param {(Node | string)[]} children
 */
function make(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/**
 * @param {string} className
 * @param {() => void} pressed
 * @param {(Node | string)[]} children
 */
function makeButton(className, pressed, ...children) {
  const button = make('button', className, ...children);
  button.type = 'button';
  button.addEventListener('click', pressed);
  return button;
}

/**
 * A piece of text in its own direction.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {string} className
 * @param {string} text
 */
function makeText(name, className, text) {
  const made = make(name, className, visible(text));
  made.dir = 'auto';
  return made;
}

/** @param {number} label */
function colorClass(label) {
  return `c${Math.min(data.labels[label].color, COLORS - 1)}`;
}

/**
 * The color and the shape of a role or kind.
 * @param {string} className
 */
function swatch(className) {
  const made = make('span', `swatch ${className}`);
  made.setAttribute('aria-hidden', 'true');
  return made;
}

/**
 * Makes the children of an element those of the entries. A child whose entry stays is kept, so that its focus
 * stays. A child with open details is kept for the time that its entry comes back.
 * @template T
 */
class KeyedList {
  /**
   * @param {HTMLElement} parent
   * @param {(entry: T) => string} key
   * @param {(entry: T) => HTMLElement} create
   * @param {(made: HTMLElement, entry: T) => void} update
   */
  constructor(parent, key, create, update) {
    this.parent = parent;
    this.key = key;
    this.create = create;
    this.update = update;
    /** @type {Map<string, HTMLElement>} */
    this.made = new Map();
  }

  /** @param {T[]} entries */
  show(entries) {
    const wanted = entries.map((entry) => {
      const key = this.key(entry);
      let made = this.made.get(key);
      if (!made) {
        made = this.create(entry);
        this.made.set(key, made);
      }
      this.update(made, entry);
      return made;
    });
    const isWanted = new Set(wanted);
    for (const [key, made] of this.made) {
      if (isWanted.has(made)) continue;
      made.remove();
      if (!made.querySelector('[open]')) this.made.delete(key);
    }
    let next = this.parent.firstElementChild;
    for (const made of wanted) {
      if (made === next) next = next.nextElementSibling;
      else this.parent.insertBefore(made, next);
    }
  }
}
