# mtc --target cuda
data {
  train = images("photos")
  image : u8[3, 512, 512]
  label : class[10]
}
model {
  h  = relu(conv2d(image / 255, 64, 3, padding = 1))
  fc = linear(global_avg_pool(h), 10)
}
train {
  loss      = cross_entropy(fc, label)
  optimizer = sgd(0.1)
  batch     = 256
}
