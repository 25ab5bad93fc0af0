# Do two images show the same digit? One tower sees both, and it has never been told which digit it is. tools/make_pairs.py makes pairs.
param code   = 16            # numbers that an image becomes
param margin = 1             # how far apart images of two digits are to be
param lr     = 2e-3 in 0..1  # highest learning rate

data {
  train = npz("pairs-train.npz")
  test  = npz("pairs-test.npz")
  left  : u8[1, 28, 28]
  right : u8[1, 28, 28]
  same  : f32
}

fn see(x) {
  conv1 = max_pool(relu(conv2d(x, 8, 5, padding = 2)), 2)
  conv2 = max_pool(relu(conv2d(conv1, 16, 5, padding = 2)), 2)
  fc    = linear(flatten(conv2), code)
  return fc
}

model {
  layer tower(x) = see(x / 255)
  a        = tower(left)
  b        = tower(right)
  distance = sqrt(sum((a - b)^2) + 1e-6)
  near     = same * distance^2
  far      = (1 - same) * relu(margin - distance)^2
  correct  = where(distance < margin / 2, same, 1 - same)  # 1 where a threshold in the middle is right
}

train {
  loss      = near + far
  metric    = correct
  predict   = distance
  optimizer = adam(cosine_lr(lr))
  batch     = 64
  epochs    = 5
}
